package queues

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Queue is what waits in one queue and who works for it.
type Queue struct {
	Name    string
	Paused  bool
	Kinds   []QueueKind // by type, in their order; those with tasks that wait
	Workers map[model.WorkerStatus]int
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
const QueueNotFound model.Code = "queue_not_found"

// Outstanding counts all that waits or runs.
func (q *Queue) Outstanding() int { return q.Depth() + q.Running }

// Queues lists the queues of a scope that hold tasks, have workers or are paused, by name.
func (s *Service) Queues(ctx context.Context, scope model.Scope) ([]*Queue, error) {
	ctx = s.store.Within(ctx, 0)
	return s.queues(ctx, "queues", scope, "")
}

// Queue tells of one queue. One that holds no tasks which wait or run, has no workers and is not paused is unknown.
func (s *Service) Queue(ctx context.Context, scope model.Scope, name string) (*Queue, error) {
	ctx = s.store.Within(ctx, 0)
	found, err := s.queues(ctx, "queue", scope, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &model.Error{Code: QueueNotFound, Op: "queue", Message: "nothing is known of this queue in this tenant and workspace: no task waits in it or runs, it has no workers and is not paused; check the name"}
	}
	return found[0], nil
}

// queues tells of one queue, or of all for "".
func (s *Service) queues(ctx context.Context, op string, scope model.Scope, only string) ([]*Queue, error) {
	byName := map[string]*Queue{}
	of := func(name string) *Queue {
		if byName[name] == nil {
			byName[name] = &Queue{Name: name, Workers: map[model.WorkerStatus]int{}}
		}
		return byName[name]
	}
	refs, err := s.workers.WorkerIDs(ctx, op, scope, model.WorkerStatuses)
	if err != nil {
		return nil, err
	}
	able := newAbilities()
	workers, err := s.workers.ReadCandidates(ctx, s.store.DoBulk, op, refs, only, func(w *model.Worker) bool {
		of(w.Queue).Workers[w.Status]++
		if w.Status == model.Online {
			able.add(w)
		}
		return w.Status != model.Offline
	})
	if err != nil {
		return nil, err
	}
	if err := s.workers.CountLoad(ctx, s.store.DoBulk, op, workers); err != nil {
		return nil, err
	}
	for _, w := range workers {
		of(w.Queue).Running += w.Held
	}
	prefix := scope.String() + "/"
	if only != "" {
		prefix += only + "/"
	}
	if err := s.waitingClasses(ctx, op, prefix, func(now time.Time, classes []waitingClass) {
		labels := able.labelsOf(ctx, s, classes)
		for _, c := range classes {
			k := of(c.queue).kind(c.head.Class.Kind)
			k.Depth += c.tasks
			k.OldestWait = max(k.OldestWait, now.Sub(schema.ParseMillis(c.head.Since)))
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
	head  *schema.ReadyEntry
	tasks int
}

const classPage = 150

// waitingClasses reads what waits in every shard below a prefix, a page of each at a time, and which queues are paused.
func (s *Service) waitingClasses(ctx context.Context, op, prefix string, page func(now time.Time, classes []waitingClass), paused func(queue string)) error {
	after := map[int]string{}
	for shard := range s.store.Keys {
		after[shard] = ""
	}
	for limit := MaxPausedQueues; len(after) > 0; limit = 0 {
		var calls []*store.Call
		for shard, from := range after {
			k := s.store.Keys[shard]
			calls = append(calls, store.NewCall(shard, s.store.Scripts.Get("queues"), []string{k.Ready, k.Pauses}, prefix, from, classPage, limit))
		}
		s.store.DoBulk(ctx, op, calls)
		after = map[int]string{}
		for _, c := range calls {
			if c.Err != nil {
				return c.Err
			}
			for _, name := range c.Reply.List(1).Strings() {
				if _, queue, ok := schema.SplitName(name); ok {
					paused(queue)
				}
			}
			var classes []waitingClass
			heads := c.Reply.List(2).Strings()
			for i, text := range heads {
				if head, ok := schema.ParseReady(text, c.Shard); ok {
					classes = append(classes, waitingClass{strings.SplitN(head.Class.Name, "/", 4)[2], head, int(c.Reply.List(3).Int(i))})
				}
			}
			if len(heads) == classPage && len(classes) > 0 {
				after[c.Shard] = classes[len(classes)-1].head.Class.Name
			}
			page(c.Reply.Time(0), classes)
		}
	}
	return nil
}

// MaxPausedQueues is how many queues of one workspace may be paused at a time: each is kept in every shard until it is
// resumed.
const MaxPausedQueues = 1000

// PauseQueue stops claims from a queue; what waits in it stays, and new tasks are taken. What workers hold already
// goes on. It tells whether the queue has come to be by that: nothing was known of it.
func (s *Service) PauseQueue(ctx context.Context, scope model.Scope, queue string) (created bool, err error) {
	ctx = s.store.Within(ctx, 0)
	_, err = s.Queue(ctx, scope, queue)
	if created = model.CodeOf(err) == QueueNotFound; err != nil && !created {
		return false, err
	}
	re, err := s.store.Do(ctx, "pause", s.pauseCall(0, scope, queue, "1", "", MaxPausedQueues))
	if err != nil {
		return false, err
	}
	if re.Int(0) == schema.CodeRefused {
		return false, &model.Error{Code: model.Overloaded, TooMany: true, Op: "pause", RetryAfter: time.Minute,
			Message: fmt.Sprintf("%d queues are paused in this workspace, which is the most; resume those that need not be, such as names that were never used", MaxPausedQueues)}
	}
	return created, s.setPaused(ctx, "pause", scope, queue, "1")
}

// ResumeQueue lets claims go on and wakes those that wait.
func (s *Service) ResumeQueue(ctx context.Context, scope model.Scope, queue string) error {
	ctx = s.store.Within(ctx, 0)
	if err := s.setPaused(ctx, "resume", scope, queue, ""); err != nil {
		return err
	}
	_, err := s.store.Do(ctx, "resume", s.pauseCall(0, scope, queue, "", "1", ""))
	return err
}

// setPaused tells every shard but the first, since each hands out its tasks by itself. The first comes before the others
// where a queue is paused, since it judges, and after them where it goes on. What fails half-way is done by a repeat.
func (s *Service) setPaused(ctx context.Context, op string, scope model.Scope, queue, pause string) error {
	var calls []*store.Call
	for shard := 1; shard < s.store.Shards(); shard++ {
		calls = append(calls, s.pauseCall(shard, scope, queue, pause, "", ""))
	}
	s.store.DoAll(ctx, op, calls)
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

func (s *Service) pauseCall(shard int, scope model.Scope, queue, pause, wake string, limit any) *store.Call {
	return store.NewCall(shard, s.store.Scripts.Get("pause"), []string{s.store.Keys[shard].Pauses}, scope.String()+"/"+queue, pause, wake, limit)
}
