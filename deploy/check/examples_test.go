package check

import (
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const examplesDir = "../helm/examples"

// The chart with each file of example values.
func TestExamples(t *testing.T) {
	want := map[string]string{
		"autoscaling.yaml":      "2 workloads, 2 budgets, 1 autoscalers, 2 policies, 0 ingresses",
		"cluster.yaml":          "2 workloads, 2 budgets, 1 autoscalers, 2 policies, 0 ingresses",
		"external-secrets.yaml": "2 workloads, 2 budgets, 1 autoscalers, 2 policies, 0 ingresses",
		"ingress-tls.yaml":      "2 workloads, 2 budgets, 1 autoscalers, 2 policies, 1 ingresses",
		"monitoring.yaml":       "2 workloads, 2 budgets, 1 autoscalers, 2 policies, 0 ingresses",
		"oidc.yaml":             "3 workloads, 2 budgets, 1 autoscalers, 3 policies, 0 ingresses",
		"sentinel.yaml":         "2 workloads, 2 budgets, 1 autoscalers, 2 policies, 0 ingresses",
	}
	files, err := filepath.Glob(examplesDir + "/*.yaml")
	if err != nil || len(files) != len(want) {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			(&chartCase{values: read(t, file), kinds: want[filepath.Base(file)]}).fit(t)
		})
	}
}

// externalSecret is all that the example contains of an ExternalSecret of the External Secrets Operator.
type externalSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		RefreshInterval metav1.Duration `json:"refreshInterval"`
		SecretStoreRef  struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"secretStoreRef"`
		Target named `json:"target"`
		Data   []struct {
			SecretKey string `json:"secretKey"`
			RemoteRef struct {
				Key      string `json:"key"`
				Property string `json:"property"`
			} `json:"remoteRef"`
		} `json:"data"`
	} `json:"spec"`
}

// The External Secrets Operator creates the Secrets and keys that the pods of that example read.
func TestExternalSecrets(t *testing.T) {
	var created []string
	for _, document := range documents(t, []byte(read(t, examplesDir+"/objects/externalsecrets.yaml"))) {
		e := strictly(t, document, &externalSecret{})
		if e.APIVersion != "external-secrets.io/v1" || e.Kind != "ExternalSecret" {
			t.Errorf("%s %s is no ExternalSecret", e.APIVersion, e.Kind)
		}
		for _, d := range e.Spec.Data {
			created = append(created, e.Spec.Target.Name+" "+d.SecretKey)
		}
	}
	files, err := template(t, "lubdub", read(t, examplesDir+"/external-secrets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, w := range decoded(t, files).workloads {
		for _, e := range w.pods.Spec.Containers[0].Env {
			if e.ValueFrom != nil {
				used = append(used, e.ValueFrom.SecretKeyRef.Name+" "+e.ValueFrom.SecretKeyRef.Key)
			}
		}
		for _, v := range w.pods.Spec.Volumes {
			if v.Secret != nil {
				used = append(used, v.Secret.SecretName+" "+v.Secret.Items[0].Key)
			}
		}
	}
	slices.Sort(used)
	slices.Sort(created)
	if used = slices.Compact(used); !slices.Equal(used, created) {
		t.Errorf("it creates %q, and the pods read %q", created, used)
	}
}
