package tracker

import (
	"context"
	"slices"
	"strings"
	"time"
)

// MachineNotFound is the code of a machine that this scope does not have, or not any more.
const MachineNotFound Code = "machine_not_found"

// Machine is a host as its workers show it.
type Machine struct {
	Scope           Scope
	ID              string
	Status          WorkerStatus // ONLINE while a worker of it is, else DRAINING while one is
	Workers         map[WorkerStatus]int
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
func (t *Tracker) Machine(ctx context.Context, scope Scope, id string) (*Machine, error) {
	t = t.within(ctx, 0)
	list, err := t.readMachines("machine", scope, []string{id})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, machineNotFound("machine")
	}
	return list[0], nil
}

func machineNotFound(op string) error {
	return &Error{Code: MachineNotFound, Op: op, Message: "no machine with this id in this tenant and workspace; a machine is known as long as one of its workers is, and while it is drained"}
}

// MachinePage is one page of machines, in the order of their ids.
type MachinePage struct {
	Machines []*Machine
	Next     string
	Total    int
}

// MachineFilter chooses machines of one scope.
type MachineFilter struct {
	Scope    Scope
	PageSize int
	After    string
}

// Machines gives one page of machines.
func (t *Tracker) Machines(ctx context.Context, f MachineFilter) (*MachinePage, error) {
	t = t.within(ctx, 0)
	ids, err := t.indexed("machines", f.Scope, "M")
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
	page.Machines, err = t.readMachines("machines", f.Scope, rest)
	return page, err
}

// membersHeard is of how many workers a machine's last beat is looked for: those that registered last, of the best status
// that it has.
const membersHeard = 100

func (t *Tracker) readMachines(op string, scope Scope, ids []string) ([]*Machine, error) {
	calls := make([]*call, len(ids))
	for i, id := range ids {
		shard := t.store.machineShard(scope, id)
		k, name := t.store.keys[shard], taskName(scope, id)
		calls[i] = newCall(shard, t.store.scripts.Get("machine_read"),
			[]string{k.machine(name), k.machineWorkers(name), k.machinePeriods(name), k.stales(scope, "m:"+id)}, membersHeard)
	}
	t.store.doBulk(op, calls)
	var machines []*Machine
	var refs []*workerRef
	for i, c := range calls {
		if c.err != nil {
			return nil, c.err
		}
		status := statusOf(c.reply.str(1))
		if status == "" {
			continue
		}
		m := &Machine{Scope: scope, ID: ids[i], Status: status, Workers: map[WorkerStatus]int{}, StaleCount: int(c.reply.int(5))}
		m.Flapping = m.StaleCount >= FlappingCount
		m.Uptime = machineUptime(c.reply.time(0), parseMs(c.reply.str(2)), parseMs(c.reply.str(3)), c.reply.list(4).strings())
		if since := parseMs(c.reply.str(8)); !since.IsZero() {
			m.Drain = &MachineDrain{Since: since, Deadline: parseMs(c.reply.str(9)), Reason: c.reply.str(10)}
		}
		for i, status := range WorkerStatuses {
			m.Workers[status] = int(c.reply.list(6).int(i))
		}
		for _, entry := range c.reply.list(7).strings() {
			_, id, _ := strings.Cut(entry, "/")
			if r, ok := t.workerRef(scope, id); ok {
				refs = append(refs, r)
			}
		}
		machines = append(machines, m)
	}
	workers, err := t.sift(op, refs, func(*Worker) bool { return true })
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
		add(parseMs(begin), parseMs(end))
	}
	if !since.IsZero() {
		add(since, now)
	}
	return percent(up, now.Sub(from))
}
