package tracker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Queue is what waits in one queue and who works for it.
type Queue struct {
	Name    string
	Paused  bool
	Kinds   []QueueKind // by type, in their order; those with tasks that wait
	Workers map[WorkerStatus]int
}

// QueueKind is what waits of one type.
type QueueKind struct {
	Type       string // empty: tasks without a type
	Depth      int    // tasks that could be claimed now
	Unrunnable int    // of these, those that no ONLINE worker of the queue can run
	OldestWait time.Duration
}

// Depth counts all that waits.
func (q *Queue) Depth() (n int) {
	for _, k := range q.Kinds {
		n += k.Depth
	}
	return n
}

// OldestWait is how long the oldest has waited; zero when nothing waits.
func (q *Queue) OldestWait() (d time.Duration) {
	for _, k := range q.Kinds {
		d = max(d, k.OldestWait)
	}
	return d
}

// Queues lists the queues of a scope that hold tasks, have workers or are paused, by name.
func (t *Tracker) Queues(_ context.Context, scope Scope) ([]*Queue, error) {
	waiting, paused, now, err := t.waitingClasses(scope)
	if err != nil {
		return nil, err
	}
	workers, err := t.workersOf(scope)
	if err != nil {
		return nil, err
	}
	byName := map[string]*Queue{}
	of := func(name string) *Queue {
		if byName[name] == nil {
			byName[name] = &Queue{Name: name, Workers: map[WorkerStatus]int{}}
		}
		return byName[name]
	}
	for _, name := range paused {
		of(name).Paused = true
	}
	for _, w := range workers {
		of(w.Queue).Workers[w.Status]++
	}
	for _, c := range waiting {
		k := of(c.queue).kind(c.head.class.kind)
		k.Depth += c.tasks
		k.OldestWait = max(k.OldestWait, now.Sub(parseMs(c.head.since)))
		if !t.runnable(c, workers) {
			k.Unrunnable += c.tasks
		}
	}
	queues := make([]*Queue, 0, len(byName))
	for _, q := range byName {
		slices.SortFunc(q.Kinds, func(a, b QueueKind) int { return strings.Compare(a.Type, b.Type) })
		queues = append(queues, q)
	}
	slices.SortFunc(queues, func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues, nil
}

func (q *Queue) kind(name string) *QueueKind {
	for i := range q.Kinds {
		if q.Kinds[i].Type == name {
			return &q.Kinds[i]
		}
	}
	q.Kinds = append(q.Kinds, QueueKind{Type: name})
	return &q.Kinds[len(q.Kinds)-1]
}

// waitingClass is what waits of one class in one shard.
type waitingClass struct {
	queue string
	head  *readyEntry
	tasks int
}

const classPage = 500

// waitingClasses reads what waits in every shard.
func (t *Tracker) waitingClasses(scope Scope) (classes []waitingClass, paused []string, now time.Time, err error) {
	prefix := scope.String() + "/"
	after := map[int]string{}
	for shard := range t.store.keys {
		after[shard] = ""
	}
	seen := map[string]bool{}
	for len(after) > 0 {
		var calls []*call
		for shard, from := range after {
			k := t.store.keys[shard]
			calls = append(calls, newCall(shard, t.store.scripts.Get("queues"), []string{k.ready, k.paused}, prefix, from, classPage))
		}
		t.store.doBulk("queues", calls)
		after = map[int]string{}
		for _, c := range calls {
			if c.err != nil {
				return nil, nil, now, c.err
			}
			now = c.reply.time(0)
			for _, name := range c.reply.list(1).strings() {
				if queue, ok := strings.CutPrefix(name, prefix); ok && !seen[queue] {
					seen[queue] = true
					paused = append(paused, queue)
				}
			}
			heads := c.reply.list(2).strings()
			for i, text := range heads {
				if head, ok := parseReady(text, c.shard); ok {
					queue := strings.SplitN(head.class.name, "/", 4)[2]
					classes = append(classes, waitingClass{queue, head, int(c.reply.list(3).int(i))})
					if i == classPage-1 {
						after[c.shard] = head.class.name
					}
				}
			}
		}
	}
	return classes, paused, now, nil
}

// workersOf reads the workers of a scope, those that are OFFLINE too.
func (t *Tracker) workersOf(scope Scope) ([]*Worker, error) {
	refs, err := t.workerIDs("queues", scope, WorkerStatuses)
	if err != nil {
		return nil, err
	}
	return t.readWorkers("queues", refs)
}

// runnable tells whether an ONLINE worker could claim the tasks of a class.
func (t *Tracker) runnable(c waitingClass, workers []*Worker) bool {
	labels, known := t.labelsOf(c.head)
	return !known || slices.ContainsFunc(workers, func(w *Worker) bool {
		can := waitingClaim{ClaimRequest: ClaimRequest{WorkerID: w.ID}, can: &Grant{Types: w.Types, Runtimes: w.Runtimes, Labels: w.Labels}}
		return w.Status == Online && w.Queue == c.queue && can.fits(c.head.class, labels)
	})
}

// PauseQueue stops claims from a queue; what waits in it stays, and new tasks are taken. What workers hold already
// goes on.
func (t *Tracker) PauseQueue(_ context.Context, scope Scope, queue string) error {
	return t.setPaused("pause", scope, queue, "1")
}

// ResumeQueue lets claims go on and wakes those that wait.
func (t *Tracker) ResumeQueue(_ context.Context, scope Scope, queue string) error {
	if err := t.setPaused("resume", scope, queue, ""); err != nil {
		return err
	}
	_, err := t.store.do("resume", t.pauseCall(0, scope, queue, "", "1"))
	return err
}

// setPaused tells every shard, since each hands out its tasks by itself. What fails half-way is done by a repeat.
func (t *Tracker) setPaused(op string, scope Scope, queue, pause string) error {
	calls := make([]*call, t.store.shards())
	for shard := range calls {
		calls[shard] = t.pauseCall(shard, scope, queue, pause, "")
	}
	t.store.doAll(op, calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

func (t *Tracker) pauseCall(shard int, scope Scope, queue, pause, wake string) *call {
	return newCall(shard, t.store.scripts.Get("pause"), []string{t.store.keys[shard].paused}, scope.String()+"/"+queue, pause, wake)
}
