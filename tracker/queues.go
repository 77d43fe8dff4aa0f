package tracker

import (
	"cmp"
	"context"
	"fmt"
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
	Running int // attempts that its workers hold
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

// QueueNotFound is the code of a queue of which nothing is known.
const QueueNotFound Code = "queue_not_found"

// Outstanding counts all that waits or runs.
func (q *Queue) Outstanding() int { return q.Depth() + q.Running }

// Queues lists the queues of a scope that hold tasks, have workers or are paused, by name.
func (t *Tracker) Queues(ctx context.Context, scope Scope) ([]*Queue, error) {
	t = t.within(ctx, 0)
	return t.queues("queues", scope, "")
}

// Queue tells of one queue. One that holds no tasks which wait or run, has no workers and is not paused is unknown.
func (t *Tracker) Queue(ctx context.Context, scope Scope, name string) (*Queue, error) {
	t = t.within(ctx, 0)
	found, err := t.queues("queue", scope, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &Error{Code: QueueNotFound, Op: "queue", Message: "nothing is known of this queue in this tenant and workspace: no task waits in it or runs, it has no workers and is not paused; check the name"}
	}
	return found[0], nil
}

// queues tells of one queue, or of all for "".
func (t *Tracker) queues(op string, scope Scope, only string) ([]*Queue, error) {
	byName := map[string]*Queue{}
	of := func(name string) *Queue {
		if byName[name] == nil {
			byName[name] = &Queue{Name: name, Workers: map[WorkerStatus]int{}}
		}
		return byName[name]
	}
	refs, err := t.workerIDs(op, scope, WorkerStatuses)
	if err != nil {
		return nil, err
	}
	able := newAbilities()
	workers, err := t.readCandidates(t.store.doBulk, op, refs, only, func(w *Worker) bool {
		of(w.Queue).Workers[w.Status]++
		if w.Status == Online {
			able.add(w)
		}
		return w.Status != Offline
	})
	if err != nil {
		return nil, err
	}
	if err := t.countLoad(t.store.doBulk, op, workers); err != nil {
		return nil, err
	}
	for _, w := range workers {
		of(w.Queue).Running += w.Held
	}
	prefix := scope.String() + "/"
	if only != "" {
		prefix += only + "/"
	}
	if err := t.waitingClasses(op, prefix, func(now time.Time, classes []waitingClass) {
		labels := able.labelsOf(t, classes)
		for _, c := range classes {
			k := of(c.queue).kind(c.head.class.kind)
			k.Depth += c.tasks
			k.OldestWait = max(k.OldestWait, now.Sub(parseMs(c.head.since)))
			if !able.run(c, labels) {
				k.Unrunnable += c.tasks
			}
		}
	}, func(name string) { of(name).Paused = true }); err != nil {
		return nil, err
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

const classPage = 150

// waitingClasses reads what waits in every shard below a prefix, a page of each at a time, and which queues are paused.
func (t *Tracker) waitingClasses(op, prefix string, page func(now time.Time, classes []waitingClass), paused func(queue string)) error {
	after := map[int]string{}
	for shard := range t.store.keys {
		after[shard] = ""
	}
	for limit := MaxPausedQueues; len(after) > 0; limit = 0 {
		var calls []*call
		for shard, from := range after {
			k := t.store.keys[shard]
			calls = append(calls, newCall(shard, t.store.scripts.Get("queues"), []string{k.ready, k.pauses}, prefix, from, classPage, limit))
		}
		t.store.doBulk(op, calls)
		after = map[int]string{}
		for _, c := range calls {
			if c.err != nil {
				return c.err
			}
			for _, name := range c.reply.list(1).strings() {
				if _, queue, ok := splitName(name); ok {
					paused(queue)
				}
			}
			var classes []waitingClass
			heads := c.reply.list(2).strings()
			for i, text := range heads {
				if head, ok := parseReady(text, c.shard); ok {
					classes = append(classes, waitingClass{strings.SplitN(head.class.name, "/", 4)[2], head, int(c.reply.list(3).int(i))})
				}
			}
			if len(heads) == classPage && len(classes) > 0 {
				after[c.shard] = classes[len(classes)-1].head.class.name
			}
			page(c.reply.time(0), classes)
		}
	}
	return nil
}

// MaxPausedQueues is how many queues of one workspace may be paused at a time: each is kept in every shard until it is
// resumed.
const MaxPausedQueues = 1000

// PauseQueue stops claims from a queue; what waits in it stays, and new tasks are taken. What workers hold already
// goes on. It tells whether the queue has come to be by that: nothing was known of it.
func (t *Tracker) PauseQueue(ctx context.Context, scope Scope, queue string) (created bool, err error) {
	t = t.within(ctx, 0)
	_, err = t.Queue(ctx, scope, queue)
	if created = CodeOf(err) == QueueNotFound; err != nil && !created {
		return false, err
	}
	re, err := t.store.do("pause", t.pauseCall(0, scope, queue, "1", "", MaxPausedQueues))
	if err != nil {
		return false, err
	}
	if re.int(0) == codeRefused {
		return false, &Error{Code: Overloaded, TooMany: true, Op: "pause", RetryAfter: time.Minute,
			Message: fmt.Sprintf("%d queues are paused in this workspace, which is the most; resume those that need not be, such as names that were never used", MaxPausedQueues)}
	}
	return created, t.setPaused("pause", scope, queue, "1")
}

// ResumeQueue lets claims go on and wakes those that wait.
func (t *Tracker) ResumeQueue(ctx context.Context, scope Scope, queue string) error {
	t = t.within(ctx, 0)
	if err := t.setPaused("resume", scope, queue, ""); err != nil {
		return err
	}
	_, err := t.store.do("resume", t.pauseCall(0, scope, queue, "", "1", ""))
	return err
}

// setPaused tells every shard but the first, since each hands out its tasks by itself. The first comes before the others
// where a queue is paused, since it judges, and after them where it goes on. What fails half-way is done by a repeat.
func (t *Tracker) setPaused(op string, scope Scope, queue, pause string) error {
	var calls []*call
	for shard := 1; shard < t.store.shards(); shard++ {
		calls = append(calls, t.pauseCall(shard, scope, queue, pause, "", ""))
	}
	t.store.doAll(op, calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

func (t *Tracker) pauseCall(shard int, scope Scope, queue, pause, wake string, limit any) *call {
	return newCall(shard, t.store.scripts.Get("pause"), []string{t.store.keys[shard].pauses}, scope.String()+"/"+queue, pause, wake, limit)
}
