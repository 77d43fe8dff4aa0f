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

	Superseded string // the worker whose place it took; empty: none
}

// Register registers a worker. It counts as its first beat. A worker with the same queue, machine, name, hostname and
// pid is superseded: it is OFFLINE then, and what it held is recovered. The same idempotency key again gets the same
// answer, whatever has become of the worker meanwhile, and supersedes nobody.
func (t *Tracker) Register(ctx context.Context, n NewWorker) (*Registered, error) {
	t = t.within(ctx, 0)
	if t.pace.ceiling > 0 {
		t.countWorkers() // registrations are rare, and often come all at once
	}
	g := &registration{id: t.store.newWorkerID(n.Scope, n.MachineID), interval: t.pace.interval()}
	g.told, g.timeout = t.pace.jitter(g.interval), g.interval*time.Duration(t.opts.WorkerTimeoutMultiplier)
	admitted, refusal := t.admitWorker(&n, g.id)
	defer admitted.settle(1)
	if err := t.reserveRegistration(&n, g, refusal); err != nil {
		return nil, err
	}
	r := &workerRef{scope: n.Scope, id: g.id, machine: n.MachineID}
	if r.machine == "" {
		r.machine = r.id
	}
	r.shard, _ = t.store.workerShard(r.id)
	r.lineage, r.identity = n.lineage(r.id), n.identity()
	unique := r.identity != ""
	if !unique {
		r.identity = r.id
	}
	record := n.record(r, g, unique)

	old, err := t.holderOf(&n, r.id)
	if err != nil {
		return nil, err
	}
	const tries = 16 // more than so many at once with one identity are up to no good
	for range tries {
		keys, args := t.workerKeys(r), []any{r.scope.String(), r.id, old, t.store.shards(), ms(t.opts.OfflineRetention), g.until}
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
		switch reply.int(0) {
		case codeOK:
			done := &Registered{
				WorkerID: r.id, MachineID: r.machine, Queue: n.Queue, At: reply.time(1), Interval: g.told, Timeout: g.timeout,
				Record: carried(append(record, "c", reply.int(1))), Superseded: reply.str(2),
			}
			t.superseded(ctx, &n, done, reply.str(3) != "")
			return done, nil
		case codeNotFound:
			return nil, &Error{Code: Overloaded, Op: "register", RetryAfter: time.Second,
				Message: "this registration was under way for longer than its key is kept; send it again"}
		}
		old = reply.str(2)
	}
	return nil, &Error{Code: Overloaded, Op: "register", RetryAfter: time.Second,
		Message: "many workers register with this queue, machine, name, hostname and pid at once; " + ownIdentity}
}

// holderOf gives the worker that has the identity of one that registers, "" for none.
func (t *Tracker) holderOf(n *NewWorker, id string) (string, error) {
	identity := n.identity()
	if identity == "" {
		return "", nil
	}
	shard, _ := t.store.workerShard(id)
	holder, err := t.store.do("register", newCall(shard, t.store.scripts.Get("worker_identity"),
		[]string{t.store.keys[shard].identity(n.Scope, identity)}))
	return holder.str(0), err
}

// ownIdentity is what is to be done about processes that take each other's place.
const ownIdentity = "give each process a name, machineId or hostname of its own"

// superseded recovers what a superseded worker held, and tells the log of workers that keep taking each other's place.
func (t *Tracker) superseded(ctx context.Context, n *NewWorker, by *Registered, conflict bool) {
	if by.Superseded == "" {
		return
	}
	t.recoverNow(ctx, n.Scope, by.Superseded)
	if conflict {
		t.log.Warn("workers keep superseding each other: processes share an identity, or one keeps restarting; where they are to run together "+ownIdentity,
			"scope", n.Scope.String(), "queue", n.Queue, "machineId", by.MachineID, "name", n.Name, "hostname", n.Hostname, "pid", n.PID,
			"worker", by.WorkerID, "superseded", by.Superseded)
	}
}

// record gives the fields of the worker's hash; lua/lib/worker.lua names them.
func (n *NewWorker) record(r *workerRef, g *registration, unique bool) []any {
	f := []any{"q", n.Queue, "y", strings.Join(n.Types, ","), "m", r.machine, "ln", r.lineage,
		"mc", n.MaxConcurrent, "i", ms(g.interval), "t", ms(g.timeout)}
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
