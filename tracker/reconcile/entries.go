package reconcile

import (
	"strings"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// taskEntry is an entry of a set that names a task.
type taskEntry struct {
	ref    *schema.TaskRef
	text   string
	worker string // named by the entry too
}

func taskNamed(scope model.Scope, id, entry string, shard int) taskEntry {
	return taskEntry{ref: &schema.TaskRef{Scope: scope, ID: id, Shard: shard}, text: entry}
}

// ofMember reads a member: an attempt or a task.
func ofMember(entry string, shard int) (taskEntry, bool) {
	scope, id, ok := schema.SplitName(entry)
	return taskNamed(scope, id, entry, shard), ok
}

// ofTimer reads a member after a letter for what is due.
func ofTimer(entry string, shard int) (taskEntry, bool) {
	_, member, _ := strings.Cut(entry, ":")
	scope, id, ok := schema.SplitName(member)
	return taskNamed(scope, id, entry, shard), ok
}

// ofIndex reads <scope>/<state letter>/<task>, or one of the other entries of the index, which begin with their kind.
func ofIndex(entry string, shard int) (taskEntry, bool) {
	p := strings.Split(entry, "/")
	workspace, task, parts := 1, 3, 4
	switch entry[:min(1, len(entry))] {
	case schema.SizeEntry:
		workspace = 2
	case schema.EndEntry:
		task, parts = 4, 5
	case schema.VerdictEntry:
		if parts = 9; strings.HasPrefix(entry, schema.FailureEntry) {
			p = p[:min(parts, len(p))] // the error follows
		}
	}
	if len(p) != parts {
		return taskEntry{}, false
	}
	scope := model.Scope{Tenant: strings.TrimLeft(p[0], schema.IndexKinds), Workspace: p[workspace]}
	return taskNamed(scope, p[task], entry, shard), true
}

func ofHeld(entry string, shard int) (taskEntry, bool) {
	h, ok := holdings.ParseHeld(entry, shard)
	if !ok {
		return taskEntry{}, false
	}
	e := taskNamed(h.Ref.Scope, h.Ref.ID, entry, shard)
	e.worker = h.Worker
	return e, true
}

func ofReady(entry string, shard int) (taskEntry, bool) {
	r, ok := schema.ParseReady(entry, shard)
	if !ok {
		return taskEntry{}, false
	}
	return taskNamed(r.Ref.Scope, r.Ref.ID, entry, shard), true
}

// workerEntry is an entry of a set that names a worker, or a machine that has none.
type workerEntry struct {
	ref  *schema.WorkerRef // that of a machine has no ID
	set  string            // the set that has the entry, as repair_workers.lua names it
	text string
}

// isMachine reports whether the entry is a machine's own.
func (e *workerEntry) isMachine() bool { return e.set == machineEntry }

const machineEntry = "machine"

func workerNamed(name, set, entry string, shard int) (workerEntry, bool) {
	scope, id, ok := schema.SplitName(name)
	return workerEntry{&schema.WorkerRef{Scope: scope, ID: id, Shard: shard}, set, entry}, ok
}

func ofWorkerCheck(entry string, shard int) (workerEntry, bool) {
	return workerNamed(entry, "workerbeats", entry, shard)
}

func ofRecovery(entry string, shard int) (workerEntry, bool) {
	return workerNamed(entry, "recoveries", entry, shard)
}

// ofWorkerDue reads a name after a letter for what is due.
func ofWorkerDue(entry string, shard int) (workerEntry, bool) {
	_, name, _ := strings.Cut(entry, ":")
	return workerNamed(name, "workerdue", entry, shard)
}

// ofWorkerIndex reads <scope>/<status letter>/<worker>, <scope>/M/<machine>, {<scope>/m/<status letter>/<machine>,
// |<scope>/<worker>, ~<scope>/<ended wall ms>/<worker> or }<scope>/<queue>/<status letter>/<ability>/<worker>.
func ofWorkerIndex(entry string, shard int) (workerEntry, bool) {
	name, kind := strings.TrimLeft(entry, schema.IndexKinds), entry[:min(1, len(entry))]
	e, ok := workerNamed(name, "workers", entry, shard)
	switch kind {
	case schema.LateWorker:
		return e, ok
	case schema.WorkerOfQueue:
		p := strings.Split(e.ref.ID, "/")
		e.ref.ID = p[len(p)-1]
		return e, ok && len(p) == 4
	case schema.LostWorker:
		_, id, cut := strings.Cut(e.ref.ID, "/")
		e.ref.ID = id
		return e, ok && cut
	case schema.MachineByStatus:
		_, machine, cut := strings.Cut(strings.TrimPrefix(e.ref.ID, "m/"), "/")
		e.ref.ID, e.ref.Machine, e.ref.Lineage, e.ref.Identity = "", machine, machine, machine
		return workerEntry{ref: e.ref, set: machineEntry}, ok && cut
	}
	letter, id, cut := strings.Cut(e.ref.ID, "/")
	if !ok || !cut {
		return e, ok
	}
	if letter == "M" {
		e.ref.ID, e.ref.Machine, e.ref.Lineage, e.ref.Identity = "", id, id, id
		return workerEntry{ref: e.ref, set: machineEntry}, true
	}
	e.ref.ID = id
	return e, true
}
