package check

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// fit holds objects against each other and against the program that they run.
func (o *objects) fit(t *testing.T) {
	t.Helper()
	if len(o.workloads) < 2 || len(o.services) == 0 {
		t.Fatalf("there are only %d workloads and %d services", len(o.workloads), len(o.services))
	}
	o.namesFit(t)
	o.selectorsFit(t)
	judge, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range o.workloads {
		restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
		for _, r := range judge.EvaluatePod(restricted, &w.pods.ObjectMeta, &w.pods.Spec) {
			if !r.Allowed {
				t.Errorf("%s may more than it should: %s (%s)", w.GetName(), r.ForbiddenReason, r.ForbiddenDetail)
			}
		}
		c := w.pods.Spec.Containers[0]
		if root := c.SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
			t.Errorf("%s may write to its image", w.GetName())
		}
		if token := w.pods.Spec.AutomountServiceAccountToken; token == nil || *token {
			t.Errorf("%s is given a token of the cluster, which it has no use for", w.GetName())
		}
		if links := w.pods.Spec.EnableServiceLinks; links == nil || *links {
			t.Errorf("%s is given variables of services", w.GetName())
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s does not request the resources that it needs", w.GetName())
		}
		if slices.Equal(c.Args, []string{"serve"}) {
			o.programFits(t, w)
		}
	}
}

func (o *objects) namesFit(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for _, x := range o.named {
		for _, wrong := range validation.IsDNS1035Label(x.GetName()) { // services' names are the most limited
			t.Errorf("%q: %s", x.GetName(), wrong)
		}
		for key, value := range x.GetLabels() {
			for _, wrong := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
				t.Errorf("the label %s=%s of %q: %s", key, value, x.GetName(), wrong)
			}
		}
	}
	for _, w := range o.workloads {
		if seen[w.GetName()] {
			t.Errorf("there are two %q", w.GetName())
		}
		seen[w.GetName()] = true
	}
}

// selectorsFit returns selectors that match nothing or too much, and pods without a disruption budget.
func (o *objects) selectorsFit(t *testing.T) {
	t.Helper()
	selected := func(what string, selector *metav1.LabelSelector) (one workload) {
		t.Helper()
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, w := range o.workloads {
			if s.Matches(labels.Set(w.pods.Labels)) {
				one = w
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s selects the pods of %d workloads", what, n)
		}
		return one
	}
	guarded := map[string]int{}
	for _, w := range o.workloads {
		if selected(w.GetName(), w.selector).GetName() != w.GetName() {
			t.Errorf("%s does not select its own pods", w.GetName())
		}
		for _, spread := range w.pods.Spec.TopologySpreadConstraints {
			selected("the spread of "+w.GetName(), spread.LabelSelector)
		}
		if w.kind == "Deployment" && len(w.pods.Spec.TopologySpreadConstraints) != 2 {
			t.Errorf("%s is not spread over hosts and zones", w.GetName())
		}
	}
	for _, s := range o.services {
		if s.Spec.ClusterIP == corev1.ClusterIPNone { // that of the metrics selects both roles: TestChartServiceMonitor
			continue
		}
		w := selected("the service "+s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		for _, p := range s.Spec.Ports {
			if !hasPort(w, p.TargetPort) {
				t.Errorf("the service %s points to %s, which the pods do not have", s.Name, p.TargetPort.String())
			}
		}
	}
	for _, b := range o.budgets {
		selected("the budget "+b.Name, b.Spec.Selector)
	}
	for _, a := range o.autoscalers {
		found := slices.IndexFunc(o.workloads, func(w workload) bool {
			return w.kind == a.Spec.ScaleTargetRef.Kind && w.GetName() == a.Spec.ScaleTargetRef.Name
		})
		if found < 0 || o.workloads[found].replicas != nil {
			t.Errorf("%s scales nothing, or a workload that sets its own number of replicas", a.Name)
		}
	}
	for _, p := range o.policies {
		w := selected("the policy "+p.Name, &p.Spec.PodSelector)
		guarded[w.GetName()]++
		for _, in := range p.Spec.Ingress {
			for _, port := range in.Ports {
				if !hasPort(w, *port.Port) {
					t.Errorf("the policy %s allows traffic to %s, which the pods do not have", p.Name, port.Port.String())
				}
			}
			o.peersFit(t, in.From, selected)
		}
		for _, out := range p.Spec.Egress {
			o.peersFit(t, out.To, selected)
		}
	}
	for _, w := range o.workloads {
		if len(o.policies) > 0 && guarded[w.GetName()] != 1 {
			t.Errorf("%d policies guard %s", guarded[w.GetName()], w.GetName())
		}
	}
	for _, i := range o.ingresses {
		for _, rule := range i.Spec.Rules {
			backend := rule.HTTP.Paths[0].Backend.Service
			if !slices.ContainsFunc(o.services, func(s *corev1.Service) bool {
				return s.Name == backend.Name && s.Spec.Ports[0].Name == backend.Port.Name
			}) {
				t.Errorf("the ingress leads to %s, which is not there", backend.Name)
			}
		}
	}
}

// peersFit looks at those peers that are meant to be our own pods.
func (o *objects) peersFit(t *testing.T, peers []networkingv1.NetworkPolicyPeer, selected func(string, *metav1.LabelSelector) workload) {
	t.Helper()
	for _, p := range peers {
		if p.PodSelector != nil && p.PodSelector.MatchLabels["app.kubernetes.io/component"] != "" {
			selected("a peer", p.PodSelector)
		}
	}
}

func hasPort(w workload, port intstr.IntOrString) bool {
	for _, p := range w.pods.Spec.Containers[0].Ports {
		if port.StrVal == p.Name || port.IntVal == p.ContainerPort {
			return true
		}
	}
	return false
}

// programFits holds a workload that runs Lubdub against the settings that it gives it, as the program itself reads them.
func (o *objects) programFits(t *testing.T, w workload) {
	t.Helper()
	spec, c := w.pods.Spec, w.pods.Spec.Containers[0]
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil {
			env[e.Name] = "rediss://:secret@redis:6379/0"
		}
	}
	s := o.settings(t, env)
	grace, needed := float64(*spec.TerminationGracePeriodSeconds), s.seconds(t, "drain-delay")+20 // s that requests have to end
	if grace <= needed {
		t.Errorf("%s is killed %v s after SIGTERM, and may take %v", w.GetName(), grace, needed)
	}
	ready := c.ReadinessProbe
	noticed := float64(ready.PeriodSeconds*ready.FailureThreshold + ready.TimeoutSeconds)
	if drain := s.seconds(t, "drain-delay"); drain <= noticed {
		t.Errorf("%s serves for %v s while it drains, and it takes up to %v to be noticed", w.GetName(), drain, noticed)
	}
	if period := s.seconds(t, "health-check-period"); period < 2*float64(ready.PeriodSeconds) {
		t.Errorf("%s: clients may come back after %d s, and health-check-period is %v", w.GetName(), ready.PeriodSeconds, period)
	}
	for name, port := range map[string]string{"api": s["listen"], "admin": s["admin-listen"]} {
		if name == "api" && s["roles"] != "api" {
			continue
		}
		at := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
		if at < 0 || port != ":"+strconv.Itoa(int(c.Ports[at].ContainerPort)) {
			t.Errorf("%s listens for %s at %s, and its ports are %v", w.GetName(), name, port, c.Ports)
		}
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if !hasPort(w, probe.HTTPGet.Port) || probe.HTTPGet.Path != map[bool]string{true: "/readyz", false: "/livez"}[probe == ready] {
			t.Errorf("%s is probed at %s of %s", w.GetName(), probe.HTTPGet.Path, probe.HTTPGet.Port.String())
		}
	}
	mounted := map[string]bool{}
	for _, m := range c.VolumeMounts {
		mounted[m.MountPath] = slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
	}
	for _, file := range append(slices.Collect(maps.Values(s)), env["LUBDUB_CONFIG"]) {
		if dir := fileOfOurs.FindString(file); dir != "" && !mounted[dir] {
			t.Errorf("%s reads %s, and nothing is mounted at %s", w.GetName(), file, dir)
		}
	}
	if keys := s["signing-keys-file"]; (s["roles"] == "api") != (keys != "") || mounted["/etc/lubdub/keys"] != (keys != "") {
		t.Errorf("%s has the role %s and the signing keys %q", w.GetName(), s["roles"], keys)
	}
}
