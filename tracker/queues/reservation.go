package queues

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// grant is what a worker may claim now, and what it can run.
type grant struct {
	Max       int // tasks; 0: it is at its maxConcurrent
	Queue     string
	MachineID string
	Types     []string
	Runtimes  []string
	Labels    map[string]string
	At        time.Time // by Redis's clock

	name   string
	worker *schema.WorkerRef
	ended  string // reservations that had ended when it was made
	lost   bool   // the worker was silent for its timeout
}

// reservationLife is more than any claim takes: a reservation that a dead replica left behind ends by then.
const reservationLife = 10 * time.Second

// reserveClaim reserves room for up to `want` tasks of a worker. The registration knows a number that the worker holds no
// more than; only when that leaves too little is what it holds counted in every shard. Settle the grant when what was
// claimed stands in the held sets, or nothing was. With `hear` the worker has just asked, which counts as its beat.
func (s *Service) reserveClaim(ctx context.Context, scope model.Scope, workerID string, want int, hear bool) (*grant, error) {
	r, ok := s.store.WorkerRef(scope, workerID)
	if !ok {
		return nil, workers.NoWorker("claim")
	}
	g := &grant{name: model.NewID(""), worker: r}
	err := s.doReserve(ctx, g, s.reserveCall(g, want, "", "", hear))
	if err == nil && g.Max < want && !g.lost {
		w := &model.Worker{Scope: scope, ID: workerID}
		load, settle := s.workers.LoadCalls([]*model.Worker{w})
		s.store.DoAll(ctx, "claim", load)
		for _, c := range load {
			if c.Err != nil {
				s.settleClaim(ctx, g, 0)
				return nil, c.Err
			}
		}
		settle()
		err = s.doReserve(ctx, g, s.reserveCall(g, want, w.Held, g.ended, false))
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (s *Service) doReserve(ctx context.Context, g *grant, c *store.Call) error {
	re, err := s.store.Do(ctx, "claim", c)
	if err != nil {
		return err
	}
	if err := workers.WorkerRefusal("claim", re.Int(0), model.WorkerReason(re.Str(9))); err != nil {
		return err
	}
	g.At, g.Max, g.Queue, g.MachineID, g.ended = re.Time(1), int(re.Int(2)), re.Str(4), re.Str(5), re.Str(10)
	g.lost = re.Int(11) == 1
	g.Types, g.Runtimes, g.Labels = workers.SplitNames(re.Str(6)), workers.SplitNames(re.Str(7)), nil
	schema.Unmarshal(re.Str(8), &g.Labels)
	return nil
}

func (s *Service) reserveCall(g *grant, want int, n, counted any, hear bool) *store.Call {
	k, name := s.store.Keys[g.worker.Shard], schema.TaskName(g.worker.Scope, g.worker.ID)
	heard := ""
	if hear {
		heard = name
	}
	return store.NewCall(g.worker.Shard, s.store.Scripts.Get("worker_reserve"), []string{k.Worker(name), k.Reserved(name), k.Clock, k.WorkerBeats},
		g.name, want, model.Millis(reservationLife), n, counted, heard)
}

// settleClaim ends a reservation of which `used` places hold tasks now. It waits, so that the worker's next claim does
// not find it; one that could not be settled ends by itself.
func (s *Service) settleClaim(ctx context.Context, g *grant, used int) {
	s.store.DoAll(ctx, "claim", []*store.Call{s.reserveCall(g, -1, used, "", false)})
}
