package workers

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/quotas"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

const opRegister = "register"

// Registered is the result of a registration.
type Registered struct {
	WorkerID  string
	MachineID string
	Queue     string
	At        time.Time
	Interval  time.Duration // between its heartbeats, chosen by the server
	Timeout   time.Duration
	Record    []string // the content of the worker's token, for Adopt

	Superseded  string // the worker that it superseded; empty: none
	ShouldDrain bool   // its machine is drained: it waits until the machine is resumed
}

// registration is what the server chooses for a worker.
type registration struct {
	id       string
	interval time.Duration // between its heartbeats
	timeout  time.Duration
	until    string // wall ms until which a registration with a key is allowed; "": it has none
}

// registrar registers workers and stores their heartbeats.
type registrar struct {
	store    *store.Store
	beats    *beats.Service
	holdings *holdings.Service
	quotas   *quotas.Service
	scripts  *scripts
	reader   *reader
	opts     Options
	log      *slog.Logger
}

// Register registers a worker, which counts as its first heartbeat. A worker with the same queue, machine, name, hostname and pid
// is superseded: it goes OFFLINE and what it held is recovered. A repeat with the same idempotency key gets the same result,
// whatever the state of the worker is by then, and supersedes no worker.
func (s *registrar) Register(ctx context.Context, n model.NewWorker) (*Registered, error) {
	ctx = s.store.Within(ctx, 0)
	g := &registration{id: s.store.NewWorkerID(n.Scope, cmp.Or(n.MachineID, n.Lineage(""))), interval: s.opts.Interval,
		timeout: s.opts.Interval * time.Duration(s.opts.TimeoutMultiplier)}
	admitted, refusal := s.admitWorker(ctx, &n, g.id)
	defer admitted.Settle(1)
	if err := s.reserveRegistration(ctx, &n, g, refusal); err != nil {
		return nil, err
	}
	r := s.refOfNew(&n, g.id)
	record := workerRecord(&n, r, g)

	old, err := s.holderOf(ctx, &n, r.ID)
	if err != nil {
		return nil, err
	}
	const tries = 16 // more simultaneous registrations of one identity are not plausible
	for range tries {
		supersedes, err := s.supersededBy(ctx, r, old)
		if err != nil {
			return nil, err
		}
		reply, err := s.store.Do(ctx, opRegister, s.scripts.registerCall(r, supersedes, g.until, record))
		if err != nil {
			return nil, err
		}
		done := readRegister(reply)
		switch done.code {
		case schema.CodeOK:
			s.log.Info("worker registered", n.Scope.LogAttr(), "workerId", r.ID, "queue", n.Queue, "machineId", r.Machine, "name", n.Name,
				"by", model.ActorOf(ctx))
			s.afterSupersession(ctx, &n, r, done)
			return &Registered{
				WorkerID: r.ID, MachineID: r.Machine, Queue: n.Queue, At: done.at, Interval: g.interval, Timeout: g.timeout,
				Record:     carried(append(record, schema.WorkerRegistered, strconv.FormatInt(done.at.UnixMilli(), 10))),
				Superseded: done.superseded, ShouldDrain: done.status == model.Draining,
			}, nil
		case schema.CodeOffline:
			return nil, heldOffline(r.Machine, done)
		case schema.CodeNotFound:
			return nil, &model.Error{Code: model.Overloaded, Op: opRegister, RetryAfter: time.Second,
				Message: "this registration was under way for longer than its key is kept; send it again"}
		}
		old = done.holder
	}
	return nil, &model.Error{Code: model.Overloaded, Op: opRegister, RetryAfter: time.Second,
		Message: "many workers register with this queue, machine, name, hostname and pid at once; " + ownIdentity}
}

// heldOffline returns the error for a registration that an operator's hold forbids.
func heldOffline(machine string, done registerReply) error {
	e := &model.Error{Code: WorkerHeld, Op: opRegister, Reason: model.Reason(done.reason), Worker: done.holder}
	e.Message = "an operator has taken the worker " + e.Worker + " offline and holds it so; stop: no worker with its queue, machine and " +
		"name (without a name: hostname and pid) is registered until `lubdub worker resume " + e.Worker + "`"
	if e.Worker == "" {
		e.Machine = machine
		e.Message = "an operator has taken the machine " + machine + " offline and holds it so; stop: no worker of it is registered until " +
			"`lubdub machine resume " + machine + "`"
	}
	return e
}

// refOfNew returns the reference of a new worker.
func (s *registrar) refOfNew(n *model.NewWorker, id string) *schema.WorkerRef {
	r := &schema.WorkerRef{Scope: n.Scope, ID: id, Machine: n.MachineID, Lineage: n.Lineage(id), Identity: identityOr(n.Identity(), id)}
	if r.Machine == "" {
		r.Machine = id
	}
	r.Shard, _ = s.store.WorkerShard(id)
	return r
}

// admitWorker checks a registration against the quota of its tenant. A worker that supersedes another one does not add to it.
func (s *registrar) admitWorker(ctx context.Context, n *model.NewWorker, id string) (*quotas.Usage, error) {
	u, refusal := s.quotas.AdmitWorker(ctx, n.Scope.Tenant)
	if refusal == nil {
		return u, nil
	}
	if holder, err := s.holderOf(ctx, n, id); err != nil || holder != "" {
		return nil, err
	}
	return nil, refusal
}

// registrationLife is how long the key of a registration is kept. A worker's record is kept at least as long after its end: if the
// key exists and the record does not, the worker was never registered.
func (s *registrar) registrationLife() time.Duration {
	return min(model.IdempotencyRetention, s.opts.OfflineRetention)
}

// reserveRegistration finds the worker for the registration's key, if it has one. A repeat, or the first call when it continues,
// completes what was cut off: both register the same worker. With a refusal it reserves nothing and accepts only a repeat.
func (s *registrar) reserveRegistration(ctx context.Context, n *model.NewWorker, g *registration, refusal error) error {
	if n.IdempotencyKey == "" {
		return refusal
	}
	life := s.registrationLife()
	if refusal != nil {
		life = 0
	}
	reply, err := s.store.Do(ctx, opRegister, s.scripts.registrationCall(n, g, life))
	if err != nil {
		return err
	}
	first := readRegistration(reply)
	switch {
	case !first.same:
		return &model.Error{Code: model.IdempotencyMismatch, Op: opRegister,
			Message: "this registration id was used with another body before; draw a new one for each registration, or repeat the first body"}
	case !first.known:
		return refusal
	}
	*g = first.of
	return nil
}

// holderOf returns the worker that has the identity of a new one, "" for none.
func (s *registrar) holderOf(ctx context.Context, n *model.NewWorker, id string) (string, error) {
	identity := n.Identity()
	if identity == "" {
		return "", nil
	}
	shard, _ := s.store.WorkerShard(id)
	reply, err := s.store.Do(ctx, opRegister, s.scripts.identityCall(shard, n.Scope, identity))
	return readIdentity(reply), err
}

// supersededBy resolves the worker that another one supersedes; for "" it returns nil.
func (s *registrar) supersededBy(ctx context.Context, by *schema.WorkerRef, old string) (*schema.WorkerRef, error) {
	if old == "" {
		return nil, nil
	}
	r, err := s.reader.findWorker(ctx, opRegister, by.Scope, old)
	if model.CodeOf(err) == WorkerNotFound { // its record was lost; the identity alone must not block registrations
		lost := *by
		lost.ID = old
		return &lost, nil
	}
	return r, err
}

// ownIdentity is the advice for processes that supersede each other.
const ownIdentity = "give each process a unique name, machineId or hostname"

// afterSupersession recovers what a superseded worker held, and logs workers that keep superseding each other.
func (s *registrar) afterSupersession(ctx context.Context, n *model.NewWorker, by *schema.WorkerRef, done registerReply) {
	if done.superseded == "" {
		return
	}
	s.holdings.RecoverNow(ctx, n.Scope, done.superseded)
	s.log.Info("worker is superseded and offline", n.Scope.LogAttr(), "workerId", done.superseded, "machineId", by.Machine,
		"successor", by.ID, "by", model.ActorOf(ctx))
	if done.conflict {
		s.log.Warn("workers keep superseding each other: processes share an identity, or one keeps restarting; "+
			"where they are to run together "+ownIdentity,
			n.Scope.LogAttr(), "queue", n.Queue, "machineId", by.Machine, "name", n.Name, "hostname", n.Hostname, "pid", n.PID,
			"workerId", by.ID, "superseded", done.superseded)
	}
}

// workerRecord returns the fields of the worker's hash as name and value, without empty and default ones.
func workerRecord(n *model.NewWorker, r *schema.WorkerRef, g *registration) (record []string) {
	add := func(name, value string) { record = append(record, name, value) }
	add(schema.WorkerQueue, n.Queue)
	add(schema.WorkerTypes, strings.Join(n.Types, ","))
	add(schema.WorkerMachine, r.Machine)
	add(schema.WorkerLineage, r.Lineage)
	add(schema.WorkerMaxConcurrent, strconv.Itoa(n.MaxConcurrent))
	add(schema.WorkerInterval, strconv.FormatInt(model.Millis(g.interval), 10))
	add(schema.WorkerTimeout, strconv.FormatInt(model.Millis(g.timeout), 10))
	pid := ""
	if n.PID != 0 {
		pid = strconv.Itoa(n.PID)
	}
	for _, f := range []struct{ name, value string }{
		{schema.WorkerIdentity, n.Identity()},
		{schema.WorkerRuntimes, strings.Join(n.Runtimes, ",")},
		{schema.WorkerName, n.Name},
		{schema.WorkerHostname, n.Hostname},
		{schema.WorkerPID, pid},
		{schema.WorkerVersion, n.Version},
		{schema.WorkerLabels, model.PackLabels(n.Labels)},
		{schema.WorkerProbeURL, n.ProbeURL},
	} {
		if f.value != "" {
			add(f.name, f.value)
		}
	}
	return record
}
