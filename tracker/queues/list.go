package queues

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Queue is one queue with its waiting tasks and its workers.
type Queue struct {
	Name    string
	Paused  bool
	Kinds   []QueueKind // ordered by type; only those with waiting tasks
	Workers map[model.WorkerStatus]int
	Running int // its tasks that are dispatched or running
}

// QueueKind is the waiting tasks of one type.
type QueueKind struct {
	Type       string // empty: tasks without a type
	Depth      int    // tasks that could be claimed now
	Unrunnable int    // of these, those that no ONLINE worker of the queue can run
	OldestWait time.Duration
}

// Depth counts the waiting tasks.
func (q *Queue) Depth() (n int) {
	for _, k := range q.Kinds {
		n += k.Depth
	}
	return n
}

// OldestWait is how long the oldest task has waited; zero when none waits.
func (q *Queue) OldestWait() (d time.Duration) {
	for _, k := range q.Kinds {
		d = max(d, k.OldestWait)
	}
	return d
}

// QueueNotFound is the code for a queue that is not known.
const QueueNotFound model.Code = "queue_not_found"

// Outstanding counts the tasks that wait or run.
func (q *Queue) Outstanding() int { return q.Depth() + q.Running }

// List returns, by name, the queues of a scope that hold tasks, have workers or are paused.
func (s *Service) List(ctx context.Context, scope model.Scope) ([]*Queue, error) {
	ctx = s.store.Within(ctx, 0)
	return s.queues(ctx, "queues", scope, "")
}

// Get returns one queue. A queue without waiting or running tasks and without workers that is not paused is unknown. If all of its
// tasks are not due yet, it is found among the newest that wait, as many as a page of a list examines: a client that polls it
// must learn that nothing can be claimed now, not that its name is wrong.
func (s *Service) Get(ctx context.Context, scope model.Scope, name string) (*Queue, error) {
	ctx = s.store.Within(ctx, 0)
	found, err := s.queues(ctx, "queue", scope, name)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		waiting, err := s.tasks.List(ctx, model.TaskFilter{
			Scope: scope, States: []model.State{model.Scheduled, model.Queued}, Queue: name, Descending: true, PageSize: 1,
		})
		if err != nil {
			return nil, err
		}
		if len(waiting.Tasks) > 0 {
			return &Queue{Name: name, Workers: map[model.WorkerStatus]int{}}, nil
		}
		return nil, &model.Error{Code: QueueNotFound, Op: "queue", Message: "no such queue in this tenant and workspace: " +
			"it has no tasks and no workers and is not paused; check the name"}
	}
	return found[0], nil
}

// queues returns one queue, or all for "".
func (s *Service) queues(ctx context.Context, op string, scope model.Scope, only string) ([]*Queue, error) {
	byName := map[string]*Queue{}
	of := func(name string) *Queue {
		if byName[name] == nil {
			byName[name] = &Queue{Name: name, Workers: map[model.WorkerStatus]int{}}
		}
		return byName[name]
	}
	prefix, parts := scope.String()+"/", 1
	if only != "" {
		prefix, parts = prefix+only+"/", 0
	}
	running := &grouping{indexKey, schema.RunningEntry + prefix, parts, func(g group) bool {
		of(g.of(0)).Running += g.entries
		return true
	}}
	byStatus := &grouping{workersKey, schema.WorkerOfQueue + prefix, parts + 1, func(g group) bool {
		status := model.Online
		if g.of(1) != schema.Cordoned {
			status = model.StatusOf(g.of(1))
		}
		of(g.of(0)).Workers[status] += g.entries
		return true
	}}
	if err := s.count(ctx, op, running, byStatus); err != nil {
		return nil, err
	}
	able := &abilities{queues: s, op: op, scope: scope, prefix: prefix, parts: parts + 2}
	if err := s.waitingClasses(ctx, op, prefix, func(classes []waitingClass) error {
		labels, err := able.learn(ctx, classes)
		if err != nil {
			return err
		}
		for _, c := range classes {
			k := of(c.queue).kind(c.head.Class.Kind)
			k.Depth += c.tasks
			k.OldestWait = max(k.OldestWait, c.waited)
			if !able.run(c, labels) {
				k.Unrunnable += c.tasks
			}
		}
		return nil
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

// waitingClass is the waiting tasks of one class in one shard.
type waitingClass struct {
	queue  string
	head   *schema.ReadyEntry
	tasks  int
	waited time.Duration // of its oldest task, by the clock of its shard
}

// waitingClasses reads what waits in every shard below a prefix, a page of each at a time, and which queues are paused.
func (s *Service) waitingClasses(ctx context.Context, op, prefix string,
	page func([]waitingClass) error, paused func(queue string)) error {
	after := map[int]string{}
	for shard := range s.store.Keys {
		after[shard] = ""
	}
	for limit := MaxPausedQueues; len(after) > 0; limit = 0 {
		var calls []*store.Call
		for shard, from := range after {
			calls = append(calls, s.queuesCall(shard, prefix, from, limit))
		}
		s.store.DoBulk(ctx, op, calls)
		if err := store.FirstError(calls); err != nil {
			return err
		}
		after = map[int]string{}
		var all []waitingClass
		for _, c := range calls {
			reply := readQueues(c.Reply)
			for _, name := range reply.paused {
				if _, queue, ok := schema.SplitName(name); ok {
					paused(queue)
				}
			}
			from := len(all)
			for i, text := range reply.heads {
				if head, ok := schema.ParseReady(text, c.Shard); ok {
					all = append(all, waitingClass{strings.SplitN(head.Class.Name, "/", 4)[2], head, reply.counts[i],
						reply.now.Sub(schema.ParseMillis(head.Since))})
				}
			}
			if len(reply.heads) == classPage && len(all) > from {
				after[c.Shard] = all[len(all)-1].head.Class.Name
			}
		}
		if err := page(all); err != nil {
			return err
		}
	}
	return nil
}
