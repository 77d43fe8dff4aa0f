package check

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const manifestsDir = "../kubernetes"

var update = flag.Bool("update", false, "write deploy/kubernetes from the chart")

// helms are the lines that only Helm has a use for.
var helms = regexp.MustCompile(`(?m)^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n`)

// The plain manifests are the chart's output with the bundled Redis, so that there is one source.
func TestManifestsAreTheCharts(t *testing.T) {
	files, err := template(t, "lubdub", bundled+"\npublicUrl: http://lubdub-api.lubdub.svc:8080")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(manifestsDir, filepath.Base(name))
		want := "# Written by `make manifests` from deploy/helm/lubdub; change it there.\n" +
			strings.TrimPrefix(strings.TrimSpace(helms.ReplaceAllString(text, "")), "---\n") + "\n"
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if read(t, path) != want {
			t.Errorf("%s is not what the chart makes; run `make manifests`", path)
		}
	}
}

// kustomization is what `kubectl apply -k` reads of it.
type kustomization struct {
	metav1.TypeMeta `json:",inline"`

	Namespace string   `json:"namespace"`
	Resources []string `json:"resources"`
}

// The kustomization names every manifest, and they fit together.
func TestManifests(t *testing.T) {
	k := strictly(t, []byte(read(t, manifestsDir+"/kustomization.yaml")), &kustomization{})
	there, err := filepath.Glob(manifestsDir + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, path := range there {
		if name := filepath.Base(path); name != "kustomization.yaml" {
			files[name] = read(t, path)
		}
	}
	if named := slices.Sorted(slices.Values(k.Resources)); !slices.Equal(named, slices.Sorted(maps.Keys(files))) {
		t.Errorf("it names %q, and there are %q", named, slices.Sorted(maps.Keys(files)))
	}
	o := decoded(t, files)
	o.fit(t)
	if len(o.namespaces) != 1 || o.namespaces[0].GetName() != k.Namespace {
		t.Errorf("the namespace is %q, and made is %v", k.Namespace, o.namespaces)
	}
	enforced := o.namespaces[0].GetLabels()["pod-security.kubernetes.io/enforce"]
	if enforced != "restricted" {
		t.Errorf("the namespace lets pods do what is %q", enforced)
	}
}

type named struct {
	Name string `json:"name"`
}

// scaled is what the tests look at of KEDA's ScaledObject, and all that the example contains.
type scaled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ScaleTargetRef  named  `json:"scaleTargetRef"`
		MinReplicaCount *int32 `json:"minReplicaCount"`
		MaxReplicaCount *int32 `json:"maxReplicaCount"`
		CooldownPeriod  *int32 `json:"cooldownPeriod"`
		PollingInterval *int32 `json:"pollingInterval"`
		Fallback        *struct {
			FailureThreshold int32 `json:"failureThreshold"`
			Replicas         int32 `json:"replicas"`
		} `json:"fallback"`
		Triggers []struct {
			Type              string            `json:"type"`
			Metadata          map[string]string `json:"metadata"`
			AuthenticationRef named             `json:"authenticationRef"`
		} `json:"triggers"`
	} `json:"spec"`
}

type authentication struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		SecretTargetRef []struct {
			Parameter string `json:"parameter"`
			Name      string `json:"name"`
			Key       string `json:"key"`
		} `json:"secretTargetRef"`
	} `json:"spec"`
}

// The example of workers that KEDA scales queries the service of the manifests, and gives workers the time to finish.
func TestWorkersExample(t *testing.T) {
	var files objects
	var scale scaled
	var auth authentication
	for _, document := range documents(t, []byte(read(t, manifestsDir+"/examples/workers.yaml"))) {
		switch text := string(document); {
		case strings.Contains(text, "kind: ScaledObject"):
			strictly(t, document, &scale)
		case strings.Contains(text, "kind: TriggerAuthentication"):
			strictly(t, document, &auth)
		default:
			files.add(t, document)
		}
	}
	if len(files.workloads) != 1 || len(scale.Spec.Triggers) != 1 || len(auth.Spec.SecretTargetRef) != 1 {
		t.Fatalf("%d workloads, %d triggers, %d secrets", len(files.workloads), len(scale.Spec.Triggers), len(auth.Spec.SecretTargetRef))
	}
	w, trigger := files.workloads[0], scale.Spec.Triggers[0]
	if scale.Spec.ScaleTargetRef.Name != w.GetName() || w.replicas != nil || trigger.AuthenticationRef.Name != auth.Name {
		t.Errorf("it scales %+v, and is authenticated by %+v", scale.Spec.ScaleTargetRef, trigger.AuthenticationRef)
	}
	service := decoded(t, map[string]string{"api.yaml": read(t, manifestsDir+"/api.yaml")}).services[0]
	server := fmt.Sprintf("http://%s.lubdub.svc:%d", service.Name, service.Spec.Ports[0].Port)
	env := map[string]corev1.EnvVar{}
	for _, e := range w.pods.Spec.Containers[0].Env {
		env[e.Name] = e
	}
	worker := w.pods.Spec.Containers[0]
	if probe := worker.LivenessProbe; probe == nil || probe.HTTPGet == nil || !hasPort(w, probe.HTTPGet.Port) {
		t.Errorf("the worker's liveness probe is %+v; it must call the SDK's probe at a port of the container", worker.LivenessProbe)
	}
	if env["LUBDUB_URL"].Value != server || !strings.HasPrefix(trigger.Metadata["url"], server+"/v1/queues/") {
		t.Errorf("workers call %q, KEDA queries %q, and the server is %s", env["LUBDUB_URL"].Value, trigger.Metadata["url"], server)
	}
	if trigger.Type != "metrics-api" || trigger.Metadata["authMode"] != "bearer" || auth.Spec.SecretTargetRef[0].Parameter != "token" {
		t.Errorf("KEDA is configured with %+v %+v", trigger, auth.Spec.SecretTargetRef)
	}
	if grace := fmt.Sprint(*w.pods.Spec.TerminationGracePeriodSeconds); env["TERMINATION_GRACE_PERIOD_SECONDS"].Value != grace ||
		env["POD_NAME"].ValueFrom == nil || env["NODE_NAME"].ValueFrom == nil {
		t.Errorf("workers have %s s to end, and the environment %v", grace, env)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
