package queues

import (
	"slices"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

// groups lists what a claim can be offered: what is pinned to its worker, and what is of its types.
func (c *waitingClaim) groups() []string {
	types := c.Types
	if types == nil {
		types = append(slices.Clip(c.grant.Types), "") // tasks without a type ask for none
	}
	list := []string{"/" + c.WorkerID + "/"}
	for _, y := range types {
		list = append(list, "//"+y+"/")
	}
	return list
}

// fits tells whether the claim's worker can run the tasks of a class that asks for these labels.
func (c *waitingClaim) fits(k schema.Class, labels map[string]string) bool {
	switch {
	case k.Pin != "" && k.Pin != c.WorkerID:
		return false
	case c.Types != nil && !slices.Contains(c.Types, k.Kind), k.Kind != "" && !slices.Contains(c.grant.Types, k.Kind):
		return false
	case k.Runtime != "" && !slices.Contains(c.grant.Runtimes, k.Runtime):
		return false
	}
	for key, v := range labels {
		if got, ok := c.grant.Labels[key]; !ok || got != v {
			return false
		}
	}
	return true
}
