package beats_test

import (
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// The replicas that keep time share the slots of each shard: in every slot exactly one has its turn.
func TestTurns(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	var trs []*tracker.Tracker
	for range 3 {
		trs = append(trs, trackertest.OpenOn(t, s))
	}
	for range 2 { // after the second round each knows all
		for _, tr := range trs {
			if err := tr.Beats.Tick(); err != nil {
				t.Fatal(err)
			}
		}
	}
	base := time.UnixMilli(s.Clock.Now().UnixMilli())
	for slotNo := range 12 {
		turns := 0
		for _, tr := range trs {
			turns += tr.Beats.DueAt(base.Add(time.Duration(slotNo) * beats.Slot))
		}
		if turns != 1 {
			t.Errorf("slot %d has %d replicas", slotNo, turns)
		}
	}
}

// A flush in steady state allocates for go-redis only: a fixed number of times, however many beats it contains.
func TestFlushAllocations(t *testing.T) {
	if testenv.Race {
		t.Skip("the race detector allocates")
	}
	s := redistest.Real(t, redistest.WallClock)
	tr := trackertest.OpenOn(t, s)
	flush := tr.Beats.Flusher(0)
	measure := func(beatCount int) float64 {
		batch := make([]*beats.Beat, beatCount)
		nt := model.NewTask{Scope: model.Scope{Tenant: "acme", Workspace: "prod"}}
		if err := nt.Validate(time.Now()); err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			c, err := tr.Tasks.Create(t.Context(), nt)
			if err != nil {
				t.Fatal(err)
			}
			batch[i] = &beats.Beat{Attempt: c.Envelope.Attempt, Report: "1768471200500\tw1\t10\t\"ten\""}
			if tr.Beats.Beat(batch[i]); batch[i].Err != nil {
				t.Fatal(batch[i].Err)
			}
		}
		return testing.AllocsPerRun(200, func() {
			flush(batch)
		})
	}
	few, many := measure(1), measure(100)
	if many > few+2 {
		t.Errorf("a flush of 1 beat allocates %v times, one of 100 %v times", few, many)
	}
}
