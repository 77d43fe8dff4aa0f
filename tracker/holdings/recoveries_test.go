package holdings_test

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// All recoveries of a shard are read in one call: a machine's workers are in one shard and die together.
func TestRecoveriesOfOneShardAreReadTogether(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tr := trackertest.OpenOn(t, s)
		if err := tr.Beats.Tick(); err != nil {
			t.Fatal(err)
		}
		in := model.Scope{Tenant: "acme", Workspace: "prod"}
		var ids []string
		for range 9 {
			n := model.NewWorker{Scope: in, Queue: "q", Types: []string{"x"}, MachineID: "m", MaxConcurrent: 5}
			if err := n.Validate(); err != nil {
				t.Fatal(err)
			}
			r, err := tr.Workers.Register(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if err := trackertest.EndWithoutRecovery(tr, in, r.WorkerID); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.WorkerID)
		}
		found, err := tr.Holdings.OpenRecoveries(in, ids...)
		if err != nil || len(found) != 9 {
			t.Fatalf("%d of 9 recoveries: %v", len(found), err)
		}
		for _, rec := range found {
			if rec.Queue != "q" || len(rec.Shards) != tr.Store.Shards() {
				t.Errorf("queue %q, shards %v", rec.Queue, rec.Shards)
			}
		}
	})
}
