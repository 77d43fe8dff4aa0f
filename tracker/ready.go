package tracker

import (
	"slices"
	"strings"
)

// class is what the tasks of one class ask of a worker, as their entries in the ready set say.
type class struct {
	name    string // <tenant>/<workspace>/<queue>/<pin>/<type>/<runtime>/<labels>/
	pin     string // the one worker that may run them; "": any
	kind    string // their type; "": none
	runtime string
	labels  string // hash of the labels asked for; "": none
}

const classParts = 7

func parseClass(name string) (class, bool) {
	p := strings.Split(name, "/")
	if len(p) != classParts+1 {
		return class{}, false
	}
	return class{name: name, pin: p[3], kind: p[4], runtime: p[5], labels: p[6]}, true
}

// group is the part of a class's name behind its queue that a look asks for.
func (c class) group() string {
	if c.pin != "" {
		return "/" + c.pin + "/"
	}
	return "//" + c.kind + "/"
}

// readyEntry is one task that waits to be claimed.
type readyEntry struct {
	text  string // as it stands in the ready set
	class class
	since string // ready since, wall ms, 13 digits
	shard int
	ref   *taskRef
}

// parseReady reads an entry as ready_entry in lua/lib/ready.lua packs it.
func parseReady(text string, shard int) (*readyEntry, bool) {
	p := strings.Split(text, "/")
	if len(p) != classParts+4 { // and time, task, timeout, run
		return nil, false
	}
	rest := p[classParts:]
	name := text[:len(text)-len(strings.Join(rest, "/"))]
	c, ok := parseClass(name)
	if !ok {
		return nil, false
	}
	r := &taskRef{scope: Scope{p[0], p[1]}, id: rest[1], shard: shard}
	r.resolve(rest[3], rest[2])
	return &readyEntry{text: text, class: c, since: rest[0], shard: shard, ref: r}, true
}

// groups lists what a claim can be offered: what is pinned to its worker, and what is of its types.
func (c *waitingClaim) groups() []string {
	types := c.Types
	if types == nil {
		types = append(slices.Clip(c.can.Types), "") // tasks without a type ask for none
	}
	list := []string{"/" + c.WorkerID + "/"}
	for _, y := range types {
		list = append(list, "//"+y+"/")
	}
	return list
}

// fits tells whether the claim's worker can run the tasks of a class that asks for these labels.
func (c *waitingClaim) fits(k class, labels map[string]string) bool {
	switch {
	case k.pin != "" && k.pin != c.WorkerID:
		return false
	case c.Types != nil && !slices.Contains(c.Types, k.kind), k.kind != "" && !slices.Contains(c.can.Types, k.kind):
		return false
	case k.runtime != "" && !slices.Contains(c.can.Runtimes, k.runtime):
		return false
	}
	for key, v := range labels {
		if got, ok := c.can.Labels[key]; !ok || got != v {
			return false
		}
	}
	return true
}
