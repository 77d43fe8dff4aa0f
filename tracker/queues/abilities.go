package queues

import (
	"context"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// abilities are what the workers of queues can run that are ONLINE and not cordoned, each ability once however many workers have
// it. They say whether what waits can be run by any of them, within bounds: what is beyond these is taken to be runnable, as is
// what nobody can judge because its task is gone.
type abilities struct {
	byQueue  map[string][]*ability
	byWorker map[string]*ability // <queue>/<worker>
	seen     map[string]*ability

	judgements int // of one ability about one class, that are still made; -1: not all abilities are known
	labelSets  int // that are still looked up
}

const (
	maxAbilities  = 1000 // 8 MiB when all say as much as they may
	maxJudgements = 1_000_000
)

func newAbilities() *abilities {
	return &abilities{map[string][]*ability{}, map[string]*ability{}, map[string]*ability{}, maxJudgements, maxAskedLabels}
}

func (a *abilities) add(w *model.Worker) {
	name := strings.Join([]string{w.Queue, strings.Join(w.Types, ","), strings.Join(w.Runtimes, ","), model.PackLabels(w.Labels)}, "\t")
	can, known := a.seen[name]
	switch {
	case !known && len(a.seen) == maxAbilities:
		a.judgements = -1
		return
	case !known:
		can = &ability{types: w.Types, runtimes: w.Runtimes, labels: w.Labels}
		a.seen[name] = can
		a.byQueue[w.Queue] = append(a.byQueue[w.Queue], can)
	}
	a.byWorker[w.Queue+"/"+w.ID] = can
}

// labelsOf finds what classes ask for, as far as that is still done.
func (a *abilities) labelsOf(ctx context.Context, s *Service, classes []waitingClass) askedLabels {
	var heads []*schema.ReadyEntry
	for _, c := range classes {
		if a.labelSets > 0 && c.head.Class.Labels != "" {
			heads = append(heads, c.head)
			a.labelSets--
		}
	}
	return s.labelsOf(ctx, heads)
}

// run reports whether an ONLINE worker could claim the tasks of a class.
func (a *abilities) run(c waitingClass, labels askedLabels) bool {
	asked, known := labels.of(c.head.Class)
	k, able := c.head.Class, a.byQueue[c.queue]
	if k.Pin != "" {
		able = nil
		if can := a.byWorker[c.queue+"/"+k.Pin]; can != nil {
			able = []*ability{can}
		}
	}
	if !known || a.judgements < len(able) {
		return true
	}
	for _, can := range able {
		a.judgements--
		if can.runs(k, asked) {
			return true
		}
	}
	return false
}
