package workers

import (
	"context"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// MachineNotFound is the code for a machine that this scope does not have, or no longer has.
const MachineNotFound model.Code = "machine_not_found"

// Machine is a host, as its workers report it.
type Machine struct {
	Scope           model.Scope
	ID              string
	Status          model.WorkerStatus // ONLINE while one of its workers is, else DRAINING while one is
	Workers         map[model.WorkerStatus]int
	LastHeartbeatAt time.Time // of its worker with the latest heartbeat; zero: none recorded
	Uptime          float64   // percent of the last 24 h, or of the time since it was first seen, in which it was not OFFLINE
	StaleCount      int       // how often in the last 24 h it went OFFLINE because its last worker became stale
	Flapping        bool
	Drain           *MachineDrain // nil: it is not drained
	Hold            *model.Hold   // nil: it is not held offline
}

// MachineDrain is the drain of a machine, which lasts until the machine is resumed.
type MachineDrain struct {
	Since    time.Time
	Deadline time.Time // of the workers that it had then; zero: none
	Reason   string
}

// machines reads and changes machines and their workers.
type machines struct {
	store      *store.Store
	scripts    *scripts
	reader     *reader
	operations *operations
}

// Machine reads one machine.
func (s *machines) Machine(ctx context.Context, scope model.Scope, id string) (*Machine, error) {
	const op = "machine"
	ctx = s.store.Within(ctx, 0)
	list, err := s.readMachines(ctx, op, scope, []string{id})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, machineNotFound(op)
	}
	return list[0], nil
}

func machineNotFound(op string) error {
	return &model.Error{
		Code: MachineNotFound, Op: op,
		Message: "no machine with this id in this tenant and workspace; " +
			"a machine is known as long as one of its workers is, and while it is drained",
	}
}

// MachinePage is one page of machines, ordered by ID.
type MachinePage struct {
	Machines []*Machine
	Next     string // After for the next page; empty: this is the last one
	Total    int    // on all pages
}

// MachineFilter selects machines of one scope.
type MachineFilter struct {
	Scope      model.Scope
	Status     model.WorkerStatus // "": any
	Descending bool               // reverses the order of IDs
	PageSize   int                // 1 to 100
	After      string             // the machine after which the page begins; empty: from the start
}

// Machines returns one page of machines.
func (s *machines) Machines(ctx context.Context, f MachineFilter) (*MachinePage, error) {
	const op = "machines"
	ctx = s.store.Within(ctx, 0)
	prefix, letters := f.Scope.String()+"/", "M"
	if f.Status != "" {
		prefix, letters = schema.MachineByStatus+prefix+"m/", model.StatusCode(f.Status)
	}
	ids, err := s.reader.indexed(ctx, op, prefix, letters)
	if err != nil {
		return nil, err
	}
	page := &MachinePage{Total: len(ids)}
	ids, page.Next = pageOf(ids, f.After, f.Descending, f.PageSize, func(id string) string { return id })
	page.Machines, err = s.readMachines(ctx, op, f.Scope, ids)
	return page, err
}

// maxMembersRead is among how many workers the last heartbeat of a machine is searched: those of its best status that registered
// last.
const maxMembersRead = 100

func (s *machines) readMachines(ctx context.Context, op string, scope model.Scope, ids []string) ([]*Machine, error) {
	calls := store.CallEach(ids, func(id string) *store.Call { return s.scripts.machineReadCall(scope, id, maxMembersRead) })
	s.store.DoBulk(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	var machines []*Machine
	var latest []*schema.WorkerRef
	for i, c := range calls {
		re := readMachine(c.Reply)
		if re.status == "" {
			continue
		}
		machines = append(machines, s.newMachine(scope, ids[i], &re))
		for _, entry := range re.latest {
			_, id, _ := strings.Cut(entry, "/")
			if r, ok := s.store.WorkerRef(scope, id); ok {
				latest = append(latest, r)
			}
		}
	}
	workers, err := s.reader.sift(ctx, op, latest, func(*model.Worker) bool { return true })
	if err != nil {
		return nil, err
	}
	last := map[string]time.Time{}
	for _, w := range workers {
		if w.LastHeartbeatAt.After(last[w.MachineID]) {
			last[w.MachineID] = w.LastHeartbeatAt
		}
	}
	for _, m := range machines {
		m.LastHeartbeatAt = last[m.ID]
	}
	return machines, nil
}

// newMachine returns a machine from its record, without its last heartbeat.
func (s *machines) newMachine(scope model.Scope, id string, re *machineReply) *Machine {
	m := &Machine{
		Scope: scope, ID: id, Status: re.status, Workers: map[model.WorkerStatus]int{},
		Uptime: machineUptime(re.now, re.first, re.onlineSince, re.periods), StaleCount: re.stales,
		Flapping: re.stales >= model.FlappingThreshold,
	}
	if !re.drained.Since.IsZero() {
		m.Drain = &re.drained
	}
	if !re.held.Since.IsZero() {
		m.Hold = &re.held
	}
	for i, status := range model.WorkerStatuses {
		m.Workers[status] = re.workers[i]
	}
	return m
}

// machineUptime sums the online periods of a machine within the last day.
func machineUptime(now, first, since time.Time, periods []string) float64 {
	from := now.Add(-24 * time.Hour)
	if first.After(from) {
		from = first
	}
	var up time.Duration
	add := func(begin, end time.Time) {
		if begin.Before(from) {
			begin = from
		}
		up += max(0, end.Sub(begin))
	}
	for _, p := range periods {
		begin, end, _ := strings.Cut(p, ":")
		add(schema.ParseMillis(begin), schema.ParseMillis(end))
	}
	if !since.IsZero() {
		add(since, now)
	}
	return model.Percent(up, now.Sub(from))
}

// DrainMachine drains every worker of a machine and keeps those that register on it later DRAINING until it is resumed. A repeated
// call may set another deadline and reason.
func (s *machines) DrainMachine(ctx context.Context, scope model.Scope, id string, d Drain) (*Drained, error) {
	ctx = s.store.Within(ctx, 0)
	if err := s.setMachine(ctx, scope, id, drain, d); err != nil {
		return nil, err
	}
	d.withMachine = true // a worker that registers from here on finds the machine drained
	drained, err := s.operations.DrainMany(ctx, WorkerFilter{Scope: scope, MachineID: id}, d, false)
	if model.CodeOf(err) == NoWorkersMatch {
		return &Drained{}, nil
	}
	return drained, err
}

// OfflineMachine ends every worker of a machine at once, as Retire does, and refuses registrations on it until it is resumed.
// Repeating the call completes one that failed halfway.
func (s *machines) OfflineMachine(ctx context.Context, scope model.Scope, id, reason string) (*Acted, error) {
	ctx = s.store.Within(ctx, 0)
	if err := s.setMachine(ctx, scope, id, retire, Drain{Reason: reason}); err != nil {
		return nil, err
	}
	return s.operations.ActOnMany(ctx, Retire, WorkerFilter{Scope: scope, MachineID: id, withMachine: true}, reason, false)
}

// Resumed is the result of resuming a machine.
type Resumed struct {
	Matched int      // workers of it that were DRAINING
	Workers []string // those of them that are ONLINE now
}

// ResumeMachine undoes the drain and the hold of a machine and the drains of the workers that drain with it. Workers that were
// drained or taken offline individually stay so. Repeating the call completes one that failed halfway.
func (s *machines) ResumeMachine(ctx context.Context, scope model.Scope, id, reason string) (*Resumed, error) {
	ctx = s.store.Within(ctx, 0)
	const op = "resume"
	if err := s.setMachine(ctx, scope, id, resume, Drain{Reason: reason}); err != nil {
		return nil, err
	}
	refs, err := s.reader.IDs(ctx, op, scope, []model.WorkerStatus{model.Draining})
	if err != nil {
		return nil, err
	}
	workers, err := s.reader.sift(ctx, op, refs, func(w *model.Worker) bool { return w.MachineID == id })
	if err != nil {
		return nil, err
	}
	calls := store.CallEach(workers, func(w *model.Worker) *store.Call {
		return s.scripts.statusCall(s.reader.refOf(w), statusArgs{action: resume, reason: reason, withMachine: true})
	})
	s.store.DoAll(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	result := &Resumed{Matched: len(workers)}
	for i, c := range calls {
		if readStatus(c.Reply).code == schema.CodeOK {
			result.Workers = append(result.Workers, workers[i].ID)
		}
	}
	return result, nil
}

// setMachine drains or resumes the machine without its workers.
func (s *machines) setMachine(ctx context.Context, scope model.Scope, id string, a action, d Drain) error {
	op := string(a)
	reply, err := s.store.Do(ctx, op, s.scripts.machineDrainCall(scope, id, a, d))
	if err != nil {
		return err
	}
	if !readMachineDrain(reply) {
		return machineNotFound(op)
	}
	return nil
}
