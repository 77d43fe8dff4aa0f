package workers

import (
	"context"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
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
func (t *Service) Register(ctx context.Context, n model.NewWorker) (*Registered, error) {
	ctx = t.store.Within(ctx, 0)
	if t.pace.ceiling > 0 {
		t.countWorkers() // registrations are rare, and often come all at once
	}
	g := &registration{id: t.store.NewWorkerID(n.Scope, n.MachineID), interval: t.pace.interval()}
	g.told, g.timeout = t.pace.jitter(g.interval), g.interval*time.Duration(t.opts.TimeoutMultiplier)
	admitted, refusal := t.admitWorker(ctx, &n, g.id)
	defer admitted.Settle(1)
	if err := t.reserveRegistration(ctx, &n, g, refusal); err != nil {
		return nil, err
	}
	r := &schema.WorkerRef{Scope: n.Scope, ID: g.id, Machine: n.MachineID}
	if r.Machine == "" {
		r.Machine = r.ID
	}
	r.Shard, _ = t.store.WorkerShard(r.ID)
	r.Lineage, r.Identity = n.Lineage(r.ID), n.Identity()
	unique := r.Identity != ""
	if !unique {
		r.Identity = r.ID
	}
	record := workerRecord(&n, r, g, unique)

	old, err := t.holderOf(ctx, &n, r.ID)
	if err != nil {
		return nil, err
	}
	const tries = 16 // more than so many at once with one identity are up to no good
	for range tries {
		keys, args := t.WorkerKeys(r), []any{r.Scope.String(), r.ID, old, t.store.Shards(), model.Millis(t.opts.OfflineRetention), g.until}
		if old != "" {
			superseded, err := t.findWorker(ctx, "register", r.Scope, old)
			if model.CodeOf(err) == WorkerNotFound { // its record was lost; the identity alone must not keep others out
				superseded = &schema.WorkerRef{Scope: r.Scope, ID: old, Shard: r.Shard, Machine: r.Machine, Lineage: r.Lineage, Identity: r.Identity}
			} else if err != nil {
				return nil, err
			}
			keys = t.store.Keys[r.Shard].OfWorker(keys, superseded)
		}
		reply, err := t.store.Do(ctx, "register", store.NewCall(r.Shard, t.store.Scripts.Get("worker_register"), keys, append(args, record...)...))
		if err != nil {
			return nil, err
		}
		switch reply.Int(0) {
		case schema.CodeOK:
			done := &Registered{
				WorkerID: r.ID, MachineID: r.Machine, Queue: n.Queue, At: reply.Time(1), Interval: g.told, Timeout: g.timeout,
				Record: carried(append(record, "c", reply.Int(1))), Superseded: reply.Str(2),
			}
			t.superseded(ctx, &n, done, reply.Str(3) != "")
			return done, nil
		case schema.CodeNotFound:
			return nil, &model.Error{Code: model.Overloaded, Op: "register", RetryAfter: time.Second,
				Message: "this registration was under way for longer than its key is kept; send it again"}
		}
		old = reply.Str(2)
	}
	return nil, &model.Error{Code: model.Overloaded, Op: "register", RetryAfter: time.Second,
		Message: "many workers register with this queue, machine, name, hostname and pid at once; " + ownIdentity}
}

// holderOf gives the worker that has the identity of one that registers, "" for none.
func (t *Service) holderOf(ctx context.Context, n *model.NewWorker, id string) (string, error) {
	identity := n.Identity()
	if identity == "" {
		return "", nil
	}
	shard, _ := t.store.WorkerShard(id)
	holder, err := t.store.Do(ctx, "register", store.NewCall(shard, t.store.Scripts.Get("worker_identity"),
		[]string{t.store.Keys[shard].Identity(n.Scope, identity)}))
	return holder.Str(0), err
}

// ownIdentity is what is to be done about processes that take each other's place.
const ownIdentity = "give each process a name, machineId or hostname of its own"

// superseded recovers what a superseded worker held, and tells the log of workers that keep taking each other's place.
func (t *Service) superseded(ctx context.Context, n *model.NewWorker, by *Registered, conflict bool) {
	if by.Superseded == "" {
		return
	}
	t.holdings.RecoverNow(ctx, n.Scope, by.Superseded)
	if conflict {
		t.log.Warn("workers keep superseding each other: processes share an identity, or one keeps restarting; where they are to run together "+ownIdentity,
			"scope", n.Scope.String(), "queue", n.Queue, "machineId", by.MachineID, "name", n.Name, "hostname", n.Hostname, "pid", n.PID,
			"worker", by.WorkerID, "superseded", by.Superseded)
	}
}

// workerRecord gives the fields of the worker's hash; lua/lib/worker.lua names them.
func workerRecord(n *model.NewWorker, r *schema.WorkerRef, g *registration, unique bool) []any {
	f := []any{"q", n.Queue, "y", strings.Join(n.Types, ","), "m", r.Machine, "ln", r.Lineage,
		"mc", n.MaxConcurrent, "i", model.Millis(g.interval), "t", model.Millis(g.timeout)}
	add := func(name, value string) {
		if value != "" {
			f = append(f, name, value)
		}
	}
	if unique {
		add("id", r.Identity)
	}
	add("rn", strings.Join(n.Runtimes, ","))
	add("n", n.Name)
	add("h", n.Hostname)
	if n.PID != 0 {
		f = append(f, "p", n.PID)
	}
	add("v", n.Version)
	add("l", model.PackLabels(n.Labels))
	add("u", n.ProbeURL)
	return f
}
