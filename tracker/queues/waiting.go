package queues

import (
	"maps"
	"slices"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// ability is what a worker can run.
type ability struct {
	types    []string
	runtimes []string
	labels   map[string]string
}

func abilityOf(w *model.Worker) *ability {
	return &ability{types: w.Types, runtimes: w.Runtimes, labels: w.Labels}
}

func abilityIn(r *workers.Reserved) *ability {
	return &ability{types: r.Types, runtimes: r.Runtimes, labels: r.Labels}
}

func (a *ability) equals(b *ability) bool {
	return slices.Equal(a.types, b.types) && slices.Equal(a.runtimes, b.runtimes) && maps.Equal(a.labels, b.labels)
}

// bytes estimates its size in memory.
func (a *ability) bytes() (n int) {
	for _, name := range slices.Concat(a.types, a.runtimes) {
		n += len(name)
	}
	for key, value := range a.labels {
		n += len(key) + len(value)
	}
	return n
}

// runs reports whether it suffices for the tasks of a class that requires these labels, regardless of a pin.
func (a *ability) runs(k schema.Class, required map[string]string) bool {
	switch {
	case k.Kind != "" && !slices.Contains(a.types, k.Kind):
		return false
	case k.Runtime != "" && !slices.Contains(a.runtimes, k.Runtime):
		return false
	}
	return model.HasLabels(a.labels, required)
}

// waitingClaim is one claim in a waitlist, whose lock protects it.
type waitingClaim struct {
	ClaimRequest
	list   *waitlist
	can    *ability
	places int
	offers chan *offer // one at a time, possibly after one that says that nothing is ready
	fresh  bool        // no offer yet, and not everything was read for it
	offer  *offer      // handed out and not resolved
}

// offer is what a claim may try to take. Without entries it says that nothing is ready now.
type offer struct {
	to      *waitingClaim
	entries []*schema.ReadyEntry
	err     error
}

// wants reports whether the claim still waits for its first offer.
func (w *waitingClaim) wants() bool { return w.fresh && w.offer == nil }

// groups lists what the claim can be offered: tasks that are pinned to its worker, and tasks of its types.
func (w *waitingClaim) groups() []string {
	types := w.Types
	if types == nil {
		types = append(slices.Clip(w.can.types), "") // a task without a type requires none
	}
	list := []string{"/" + w.WorkerID + "/"}
	for _, y := range types {
		list = append(list, "//"+y+"/")
	}
	return list
}

// fits reports whether the claim can be offered the tasks of a class that requires these labels.
func (w *waitingClaim) fits(k schema.Class, labels map[string]string) bool {
	switch {
	case k.Pin != "" && k.Pin != w.WorkerID:
		return false
	case w.Types != nil && !slices.Contains(w.Types, k.Kind):
		return false
	}
	return w.can.runs(k, labels)
}

func groupsOf(waiters []*waitingClaim) []string {
	var all []string
	for _, w := range waiters {
		all = append(all, w.groups()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
