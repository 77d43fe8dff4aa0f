package queues

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// abilities are what the ONLINE, uncordoned workers of queues can run, each ability once no matter how many workers have it. They
// determine whether any worker can run the waiting tasks, within bounds: tasks beyond the bounds count as runnable, and so do
// tasks that cannot be evaluated because the task or the worker that would show it is gone.
type abilities struct {
	queues *Service
	op     string
	scope  model.Scope
	prefix string // of the workers by queue, and how many parts after it identify an ability
	parts  int

	known   bool                           // the abilities were read
	byQueue map[string]map[string]*ability // by queue and hash; nil: the ability is not known
	pinned  map[string]*ability            // of workers that tasks are pinned to, by <queue>/<worker>; nil: the worker takes no tasks

	judgements int // comparisons of an ability with a class that are left; -1: not all abilities are known
	labelSets  int // lookups that are left
	pins       int // workers that tasks are pinned to that may still be looked up
}

const (
	maxAbilities  = 1000 // 8 MiB if all are as large as allowed
	maxJudgements = 1_000_000
	maxPins       = 1000
)

// The ability that a hash identifies never changes, so it is read from one worker once and cached.
func newAbleCache() *lru.Cache[string, *ability] {
	cache, _ := lru.New[string, *ability](maxCachedLabels) // fails only for a size of 0
	return cache
}

// learn reads what is needed to evaluate the classes, within the bounds, and returns the labels that they require.
func (a *abilities) learn(ctx context.Context, classes []waitingClass) (requiredLabels, error) {
	if len(classes) > 0 && !a.known {
		if err := a.read(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.readPinned(ctx, classes); err != nil {
		return nil, err
	}
	var heads []*schema.ReadyEntry
	for _, c := range classes {
		if a.labelSets > 0 && c.head.Class.Labels != "" {
			heads = append(heads, c.head)
			a.labelSets--
		}
	}
	return a.queues.labelsOf(ctx, heads), nil
}

// read reads the existing abilities; one that is not cached is read from one of its workers.
func (a *abilities) read(ctx context.Context) error {
	a.known, a.byQueue, a.pinned = true, map[string]map[string]*ability{}, map[string]*ability{}
	a.judgements, a.labelSets, a.pins = maxJudgements, maxCachedLabels, maxPins
	s, all := a.queues, 0
	unknown := map[string][]string{} // queues by hash
	var refs []*schema.WorkerRef
	if err := s.count(ctx, a.op, &grouping{workersKey, schema.WorkerOfQueue + a.prefix, a.parts, func(g group) bool {
		queue, hash, id := g.of(0), g.of(2), g.of(3)
		_, seen := a.byQueue[queue][hash]
		switch {
		case hash == "" || seen:
			return true
		case all == maxAbilities:
			a.judgements = -1
			return false
		case a.byQueue[queue] == nil:
			a.byQueue[queue] = map[string]*ability{}
		}
		all++
		can, remembered := s.able.Get(hash)
		a.byQueue[queue][hash] = can
		if r, ok := s.store.WorkerRef(a.scope, id); ok && !remembered {
			if unknown[hash] == nil {
				refs = append(refs, r)
			}
			unknown[hash] = append(unknown[hash], queue)
		}
		return true
	}}); err != nil || a.judgements < 0 {
		return err
	}
	_, err := s.workers.ReadCandidates(ctx, s.store.DoBulk, a.op, refs, "", func(w *model.Worker) bool {
		can := abilityOf(w)
		hash := schema.Ability(w.Types, w.Runtimes, w.Labels)
		for _, queue := range unknown[hash] {
			a.byQueue[queue][hash] = can
		}
		if len(unknown[hash]) > 0 && can.bytes() <= maxRememberedBytes {
			s.able.Add(hash, can)
		}
		return false
	})
	return err
}

// readPinned reads the workers that tasks of the classes are pinned to.
func (a *abilities) readPinned(ctx context.Context, classes []waitingClass) error {
	var refs []*schema.WorkerRef
	for _, c := range classes {
		pin := c.queue + "/" + c.head.Class.Pin
		if _, seen := a.pinned[pin]; c.head.Class.Pin == "" || seen || a.pins == 0 {
			continue
		}
		a.pins--
		a.pinned[pin] = nil
		if r, ok := a.queues.store.WorkerRef(a.scope, c.head.Class.Pin); ok {
			refs = append(refs, r)
		}
	}
	_, err := a.queues.workers.ReadCandidates(ctx, a.queues.store.DoBulk, a.op, refs, "", func(w *model.Worker) bool {
		if w.Status == model.Online && w.Cordon == nil {
			a.pinned[w.Queue+"/"+w.ID] = abilityOf(w)
		}
		return false
	})
	return err
}

// run reports whether an ONLINE worker could claim the tasks of a class.
func (a *abilities) run(c waitingClass, labels requiredLabels) bool {
	required, known := labels.of(c.head.Class)
	if pin := c.head.Class.Pin; pin != "" {
		can, looked := a.pinned[c.queue+"/"+pin]
		return !looked || can != nil && (!known || can.runs(c.head.Class, required))
	}
	able := a.byQueue[c.queue]
	if !known || a.judgements < len(able) {
		return true
	}
	for _, can := range able {
		a.judgements--
		if can == nil || can.runs(c.head.Class, required) {
			return true
		}
	}
	return false
}
