package schema

import (
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Class is what the tasks of one class require of a worker, from their entries in the ready set.
type Class struct {
	Name    string // <tenant>/<workspace>/<queue>/<pin>/<type>/<runtime>/<labels>/
	Pin     string // the only worker that may run them; "": any
	Kind    string // their type; "": none
	Runtime string
	Labels  string // hash of the required labels; "": none
}

const classParts = 7

// ParseClass parses the name of a class; false: it is malformed.
func ParseClass(name string) (Class, bool) {
	p := strings.Split(name, "/")
	if len(p) != classParts+1 {
		return Class{}, false
	}
	return Class{Name: name, Pin: p[3], Kind: p[4], Runtime: p[5], Labels: p[6]}, true
}

// Group returns the part of a class's name behind its queue that claims ask for.
func (c Class) Group() string {
	if c.Pin != "" {
		return "/" + c.Pin + "/"
	}
	return "//" + c.Kind + "/"
}

// ReadyEntry is one task that waits to be claimed.
type ReadyEntry struct {
	Text  string // the entry in the ready set
	Class Class
	Since string // ready since, wall ms, 13 digits
	Shard int
	Ref   *TaskRef
}

// ParseReady parses an entry that ready_entry in lua/lib/ready.lua has packed; false: it is malformed.
func ParseReady(text string, shard int) (*ReadyEntry, bool) {
	p := strings.Split(text, "/")
	if len(p) != classParts+4 { // plus time, task, timeout, run
		return nil, false
	}
	rest := p[classParts:]
	name := text[:len(text)-len(strings.Join(rest, "/"))]
	c, ok := ParseClass(name)
	if !ok {
		return nil, false
	}
	r := &TaskRef{Scope: model.Scope{Tenant: p[0], Workspace: p[1]}, ID: rest[1], Shard: shard}
	r.Resolve(rest[3], rest[2])
	return &ReadyEntry{Text: text, Class: c, Since: rest[0], Shard: shard, Ref: r}, true
}
