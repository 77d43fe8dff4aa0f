package check

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// objects are what is applied together, by kind.
type objects struct {
	configMaps  []*corev1.ConfigMap
	accounts    []*corev1.ServiceAccount
	services    []*corev1.Service
	workloads   []workload
	budgets     []*policyv1.PodDisruptionBudget
	autoscalers []*autoscalingv2.HorizontalPodAutoscaler
	policies    []*networkingv1.NetworkPolicy
	ingresses   []*networkingv1.Ingress
	namespaces  []*corev1.Namespace
	monitors    []*monitoringv1.ServiceMonitor
	rules       []*monitoringv1.PrometheusRule
	named       []metav1.Object // all of them
}

// workload is what has pods.
type workload struct {
	metav1.Object

	kind     string
	replicas *int32
	selector *metav1.LabelSelector
	pods     corev1.PodTemplateSpec
}

// add decodes one object, as the API server does with --validate=strict: an unknown, doubled or miswritten field is refused.
func (o *objects) add(t *testing.T, document []byte) {
	t.Helper()
	var is metav1.TypeMeta
	if err := yaml.Unmarshal(document, &is); err != nil {
		t.Fatal(err)
	}
	if is.GroupVersionKind().Group != "monitoring.coreos.com" { // whose schemas are those of the Prometheus operator's types
		fitsSchema(t, is.GroupVersionKind(), document)
	}
	switch is.APIVersion + " " + is.Kind {
	case "v1 ConfigMap":
		keep(t, o, document, &o.configMaps)
	case "v1 ServiceAccount":
		keep(t, o, document, &o.accounts)
	case "v1 Service":
		keep(t, o, document, &o.services)
	case "v1 Namespace":
		keep(t, o, document, &o.namespaces)
	case "apps/v1 Deployment":
		d := keep(t, o, document, new([]*appsv1.Deployment))
		o.workloads = append(o.workloads, workload{d, is.Kind, d.Spec.Replicas, d.Spec.Selector, d.Spec.Template})
	case "apps/v1 StatefulSet":
		s := keep(t, o, document, new([]*appsv1.StatefulSet))
		o.workloads = append(o.workloads, workload{s, is.Kind, s.Spec.Replicas, s.Spec.Selector, s.Spec.Template})
	case "policy/v1 PodDisruptionBudget":
		keep(t, o, document, &o.budgets)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		keep(t, o, document, &o.autoscalers)
	case "networking.k8s.io/v1 NetworkPolicy":
		keep(t, o, document, &o.policies)
	case "networking.k8s.io/v1 Ingress":
		keep(t, o, document, &o.ingresses)
	case "monitoring.coreos.com/v1 ServiceMonitor":
		keep(t, o, document, &o.monitors)
	case "monitoring.coreos.com/v1 PrometheusRule":
		keep(t, o, document, &o.rules)
	default:
		t.Errorf("%s %s is nothing that the tests know:\n%s", is.APIVersion, is.Kind, document)
	}
}

// keep decodes an object and puts it among those of its kind.
func keep[T any, P interface {
	*T
	metav1.Object
}](t *testing.T, o *objects, document []byte, among *[]P) P {
	t.Helper()
	x := P(strictly(t, document, new(T)))
	*among, o.named = append(*among, x), append(o.named, x)
	return x
}

// strictly decodes YAML into an object and refuses what the object has no place for.
func strictly[T any](t *testing.T, document []byte, into *T) *T {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	wrong, err := kjson.UnmarshalStrict(text, into)
	if err := errors.Join(append(wrong, err)...); err != nil {
		t.Errorf("%v:\n%s", err, document)
	}
	return into
}

// documents splits a file of YAML.
func documents(t *testing.T, text []byte) (all [][]byte) {
	t.Helper()
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if value := any(nil); yaml.Unmarshal(document, &value) != nil || value != nil {
			all = append(all, document)
		}
	}
}
