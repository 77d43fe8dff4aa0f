package workers

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// MachineNotFound is the code of a machine that this scope does not have, or not any more.
const MachineNotFound model.Code = "machine_not_found"

// Machine is a host as its workers show it.
type Machine struct {
	Scope           model.Scope
	ID              string
	Status          model.WorkerStatus // ONLINE while a worker of it is, else DRAINING while one is
	Workers         map[model.WorkerStatus]int
	LastHeartbeatAt time.Time // of the worker heard last; zero: none on record
	Uptime          float64   // percent of the last 24 h, or since it was first seen, in which it was not OFFLINE
	StaleCount      int       // times in the last 24 h that it went OFFLINE because its last worker had gone stale
	Flapping        bool
	Drain           *MachineDrain // nil: it is not drained
}

// MachineDrain is the drain of a machine, which lasts until the machine is resumed.
type MachineDrain struct {
	Since    time.Time
	Deadline time.Time // of the workers that were there; zero: none
	Reason   string
}

// Machine reads one machine.
func (t *Service) Machine(ctx context.Context, scope model.Scope, id string) (*Machine, error) {
	ctx = t.store.Within(ctx, 0)
	list, err := t.readMachines(ctx, "machine", scope, []string{id})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, machineNotFound("machine")
	}
	return list[0], nil
}

func machineNotFound(op string) error {
	return &model.Error{Code: MachineNotFound, Op: op, Message: "no machine with this id in this tenant and workspace; a machine is known as long as one of its workers is, and while it is drained"}
}

// MachinePage is one page of machines, in the order of their ids.
type MachinePage struct {
	Machines []*Machine
	Next     string
	Total    int
}

// MachineFilter chooses machines of one scope.
type MachineFilter struct {
	Scope    model.Scope
	PageSize int
	After    string
}

// Machines gives one page of machines.
func (t *Service) Machines(ctx context.Context, f MachineFilter) (*MachinePage, error) {
	ctx = t.store.Within(ctx, 0)
	ids, err := t.indexed(ctx, "machines", f.Scope, "M")
	if err != nil {
		return nil, err
	}
	page := &MachinePage{Total: len(ids)}
	from, _ := slices.BinarySearchFunc(ids, f.After, compareAfter)
	rest := ids[from:]
	if size := min(max(f.PageSize, 1), 100); len(rest) > size {
		rest = rest[:size]
		page.Next = rest[size-1]
	}
	page.Machines, err = t.readMachines(ctx, "machines", f.Scope, rest)
	return page, err
}

// membersHeard is of how many workers a machine's last beat is looked for: those that registered last, of the best status
// that it has.
const membersHeard = 100

func (t *Service) readMachines(ctx context.Context, op string, scope model.Scope, ids []string) ([]*Machine, error) {
	calls := make([]*store.Call, len(ids))
	for i, id := range ids {
		shard := t.store.MachineShard(scope, id)
		k, name := t.store.Keys[shard], schema.TaskName(scope, id)
		calls[i] = store.NewCall(shard, t.store.Scripts.Get("machine_read"),
			[]string{k.Machine(name), k.MachineWorkers(name), k.MachinePeriods(name), k.Stales(scope, "m:"+id)}, membersHeard)
	}
	t.store.DoBulk(ctx, op, calls)
	var machines []*Machine
	var refs []*schema.WorkerRef
	for i, c := range calls {
		if c.Err != nil {
			return nil, c.Err
		}
		status := model.StatusOf(c.Reply.Str(1))
		if status == "" {
			continue
		}
		m := &Machine{Scope: scope, ID: ids[i], Status: status, Workers: map[model.WorkerStatus]int{}, StaleCount: int(c.Reply.Int(5))}
		m.Flapping = m.StaleCount >= FlappingCount
		m.Uptime = machineUptime(c.Reply.Time(0), schema.ParseMillis(c.Reply.Str(2)), schema.ParseMillis(c.Reply.Str(3)), c.Reply.List(4).Strings())
		if since := schema.ParseMillis(c.Reply.Str(8)); !since.IsZero() {
			m.Drain = &MachineDrain{Since: since, Deadline: schema.ParseMillis(c.Reply.Str(9)), Reason: c.Reply.Str(10)}
		}
		for i, status := range model.WorkerStatuses {
			m.Workers[status] = int(c.Reply.List(6).Int(i))
		}
		for _, entry := range c.Reply.List(7).Strings() {
			_, id, _ := strings.Cut(entry, "/")
			if r, ok := t.store.WorkerRef(scope, id); ok {
				refs = append(refs, r)
			}
		}
		machines = append(machines, m)
	}
	workers, err := t.sift(ctx, op, refs, func(*model.Worker) bool { return true })
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

// machineUptime adds up the periods in which a machine was online that lie in the last day.
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
