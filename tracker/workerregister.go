package tracker

import (
	"context"
	"strings"
	"time"
)

// Registered is the answer to a registration.
type Registered struct {
	WorkerID  string
	MachineID string
	Queue     string
	At        time.Time
	Interval  time.Duration // between its beats, the server's choice
	Timeout   time.Duration
	Record    []string // what the worker's token is to carry, for AdoptWorker
}

// Register registers a worker. It counts as its first beat. A worker with the same queue, machine, hostname and pid
// is superseded: it is OFFLINE then, and what it held is recovered.
func (t *Tracker) Register(ctx context.Context, n NewWorker) (*Registered, error) {
	r := &workerRef{scope: n.Scope, id: t.store.newWorkerID(n.Scope, n.MachineID), machine: n.MachineID}
	if r.machine == "" {
		r.machine = r.id
	}
	r.shard, _ = t.store.workerShard(r.id)
	r.lineage, r.identity = n.lineage(r.id), n.identity()
	unique := r.identity != ""
	if !unique {
		r.identity = r.id
	}
	if t.pace.ceiling > 0 {
		t.countWorkers() // registrations are rare, and often come all at once
	}
	interval := t.pace.interval()
	timeout := interval * time.Duration(t.opts.WorkerTimeoutMultiplier)
	record := n.record(r, interval, timeout, unique)

	old := ""
	if unique {
		holder, err := t.store.do("register", newCall(r.shard, t.store.scripts.Get("worker_identity"),
			[]string{t.store.keys[r.shard].identity(r.scope, r.identity)}))
		if err != nil {
			return nil, err
		}
		old = holder.str(0)
	}
	const tries = 16 // more than so many at once with one identity are up to no good
	for range tries {
		keys, args := t.workerKeys(r), []any{r.scope.String(), r.id, old, t.store.shards(), ms(t.opts.OfflineRetention)}
		if old != "" {
			superseded, err := t.findWorker("register", r.scope, old)
			if CodeOf(err) == WorkerNotFound { // its record was lost; the identity alone must not keep others out
				superseded = &workerRef{scope: r.scope, id: old, shard: r.shard, machine: r.machine, lineage: r.lineage, identity: r.identity}
			} else if err != nil {
				return nil, err
			}
			keys = t.store.keys[r.shard].ofWorker(keys, superseded)
		}
		reply, err := t.store.do("register", newCall(r.shard, t.store.scripts.Get("worker_register"), keys, append(args, record...)...))
		if err != nil {
			return nil, err
		}
		if reply.int(0) == codeOK {
			if old != "" {
				t.recoverNow(ctx, r.scope, old)
			}
			return &Registered{
				WorkerID: r.id, MachineID: r.machine, Queue: n.Queue, At: reply.time(1), Interval: t.pace.jitter(interval), Timeout: timeout,
				Record: carried(append(record, "c", reply.int(1))),
			}, nil
		}
		old = reply.str(2)
	}
	return nil, &Error{Code: Overloaded, Op: "register", RetryAfter: time.Second,
		Message: "many workers register with this queue, machine, hostname and pid at once; give each process an identity of its own"}
}

// record gives the fields of the worker's hash; lua/lib/worker.lua names them.
func (n *NewWorker) record(r *workerRef, interval, timeout time.Duration, unique bool) []any {
	f := []any{"q", n.Queue, "y", strings.Join(n.Types, ","), "m", r.machine, "ln", r.lineage,
		"mc", n.MaxConcurrent, "i", ms(interval), "t", ms(timeout)}
	add := func(name, value string) {
		if value != "" {
			f = append(f, name, value)
		}
	}
	if unique {
		add("id", r.identity)
	}
	add("rn", strings.Join(n.Runtimes, ","))
	add("n", n.Name)
	add("h", n.Hostname)
	if n.PID != 0 {
		f = append(f, "p", n.PID)
	}
	add("v", n.Version)
	add("l", packLabels(n.Labels))
	add("u", n.ProbeURL)
	return f
}
