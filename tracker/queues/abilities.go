package queues

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// abilities are what the workers of queues can run that are ONLINE and not cordoned, each ability once however many workers have
// it. They say whether what waits can be run by any of them, within bounds: what is beyond these is taken to be runnable, as is
// what nobody can judge because its task, or the worker that could tell, is gone.
type abilities struct {
	queues *Service
	op     string
	scope  model.Scope
	prefix string // of the workers by queue, and how many parts behind it name an ability
	parts  int

	known   bool                           // they were read
	byQueue map[string]map[string]*ability // by queue and hash; nil: not known what it is
	pinned  map[string]*ability            // of workers that tasks are pinned to, as <queue>/<worker>; nil: it takes nothing

	judgements int // of one ability about one class, that are still made; -1: not all abilities are known
	labelSets  int // that are still looked up
	pins       int // workers that tasks are pinned to that are still looked up
}

const (
	maxAbilities  = 1000 // 8 MiB when all say as much as they may
	maxJudgements = 1_000_000
	maxPins       = 1000
)

// What a hash of an ability stands for never changes, so it is read from one worker once, and remembered while there is room.
func newAbleCache() *lru.Cache[string, *ability] {
	cache, _ := lru.New[string, *ability](maxAskedLabels) // fails for a size of 0 only
	return cache
}

// learn reads what is to be known to judge classes, as far as that is still done, and returns which labels they ask for.
func (a *abilities) learn(ctx context.Context, classes []waitingClass) (askedLabels, error) {
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

// read reads the abilities that there are, of each one worker where it is not remembered what it is.
func (a *abilities) read(ctx context.Context) error {
	a.known, a.byQueue, a.pinned = true, map[string]map[string]*ability{}, map[string]*ability{}
	a.judgements, a.labelSets, a.pins = maxJudgements, maxAskedLabels, maxPins
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

// readPinned reads the workers that tasks of classes are pinned to.
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
func (a *abilities) run(c waitingClass, labels askedLabels) bool {
	asked, known := labels.of(c.head.Class)
	if pin := c.head.Class.Pin; pin != "" {
		can, looked := a.pinned[c.queue+"/"+pin]
		return !looked || can != nil && (!known || can.runs(c.head.Class, asked))
	}
	able := a.byQueue[c.queue]
	if !known || a.judgements < len(able) {
		return true
	}
	for _, can := range able {
		a.judgements--
		if can == nil || can.runs(c.head.Class, asked) {
			return true
		}
	}
	return false
}
