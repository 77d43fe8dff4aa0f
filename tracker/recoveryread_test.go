package tracker

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

// All recoveries of a shard are read in one go: a machine's workers live in one shard and die together.
func TestRecoveriesOfOneShardAreReadTogether(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		tr := openOn(t, s)
		if err := tr.Tick(); err != nil {
			t.Fatal(err)
		}
		in := Scope{Tenant: "acme", Workspace: "prod"}
		var refs []*workerRef
		for range 9 {
			n := NewWorker{Scope: in, Queue: "q", Types: []string{"x"}, MachineID: "m", MaxConcurrent: 5}
			if err := n.Validate(); err != nil {
				t.Fatal(err)
			}
			r, err := tr.Register(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.EndWithoutRecovery(in, r.WorkerID); err != nil {
				t.Fatal(err)
			}
			ref, _ := tr.workerRef(in, r.WorkerID)
			refs = append(refs, ref)
		}
		found, err := tr.readRecoveries("test", "swp_test", refs)
		if err != nil || len(found) != 9 {
			t.Fatalf("%d of 9 recoveries: %v", len(found), err)
		}
		for _, rec := range found {
			if rec.queue != "q" || len(rec.shards) != tr.store.shards() {
				t.Errorf("%s: queue %q, shards %v", rec.worker.id, rec.queue, rec.shards)
			}
		}
	})
}

func TestOwnedCacheEnds(t *testing.T) {
	var c ownedCache
	in, n := Scope{Tenant: "acme", Workspace: "prod"}, OwnedAttempt{TaskID: "daily", Number: 1}
	a := &Attempt{TaskID: "daily"}
	c.put(in, "w1", n, a)
	if c.get(in, "w1", n) != a {
		t.Error("an entry is not found")
	}
	e := c.of[ownedKey(in, "w1", n)]
	e.until = e.until.Add(-ownedLife)
	c.of[ownedKey(in, "w1", n)] = e
	if c.get(in, "w1", n) != nil {
		t.Error("an entry is found after its end")
	}
	if ownedLife >= MinFinishedRetention {
		t.Error("an entry may outlive its task")
	}
}
