package holdings

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// OwnedAttempt identifies an attempt for a worker that presents its own token and not the attempt's.
type OwnedAttempt struct {
	TaskID string
	Number int
}

func (n OwnedAttempt) String() string { return fmt.Sprintf("%s#%d", n.TaskID, n.Number) }

// Remember caches on this replica that an attempt was dispatched to a worker, in case the store loses it.
func (s *Service) Remember(workerID string, a *model.Attempt) {
	s.ownedBy.put(a.Scope, workerID, OwnedAttempt{TaskID: a.TaskID, Number: a.Number}, a)
}

// Owned returns the attempts that were dispatched to the worker, with everything that their own tokens would contain. The result is nil
// for any other attempt and for an unknown one, or AttemptInDoubt when the store may have lost it. An unknown attempt of a task that has
// ended for good is returned without its fence, so that its callbacks report that end. Callbacks check whether attempts are live.
func (s *Service) Owned(ctx context.Context, scope model.Scope, workerID string, names []OwnedAttempt) ([]*model.Attempt, error) {
	ctx = s.store.Within(ctx, 0)
	attempts, known, err := s.owned(ctx, "owned", scope, workerID, names)
	for i, a := range attempts {
		if a == nil && !known[i] && s.beats.MayHaveLost(s.store.ShardOf(scope, names[i].TaskID)) {
			attempts[i] = beats.AttemptInDoubt
		}
	}
	return attempts, err
}

// owned also returns for which attempts the owner is known.
func (s *Service) owned(ctx context.Context, op string, scope model.Scope, workerID string, names []OwnedAttempt) (
	attempts []*model.Attempt, known []bool, err error,
) {
	attempts, known = make([]*model.Attempt, len(names)), make([]bool, len(names))
	var missing []OwnedAttempt // each once
	for i, n := range names {
		if attempts[i] = s.ownedBy.get(scope, workerID, n); attempts[i] != nil {
			known[i] = true
		} else {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return attempts, known, nil
	}
	found, err := s.fetchOwned(ctx, op, scope, workerID, missing)
	if err != nil {
		return nil, nil, err
	}
	for i, n := range names {
		if f, ok := found[n]; ok {
			attempts[i], known[i] = f.attempt, f.known
		}
	}
	return attempts, known, nil
}

// foundOwned is what the store has about an attempt.
type foundOwned struct {
	attempt *model.Attempt // nil: another worker's, or unknown
	known   bool
}

// fetchOwned looks attempts up in the store, and caches those of the worker.
func (s *Service) fetchOwned(ctx context.Context, op string, scope model.Scope, workerID string, names []OwnedAttempt) (
	map[OwnedAttempt]foundOwned, error,
) {
	found := make(map[OwnedAttempt]foundOwned, len(names))
	for _, n := range names {
		found[n] = foundOwned{}
	}
	shardOf := func(n OwnedAttempt) int { return s.store.ShardOf(scope, n.TaskID) }
	groups := schema.ByShard(slices.Collect(maps.Keys(found)), ownedLimit, shardOf)
	calls := store.CallEach(groups, func(group []OwnedAttempt) *store.Call { return s.ownedCall(shardOf(group[0]), scope, workerID, group) })
	s.store.DoAll(ctx, op, calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	for g, group := range groups {
		for i, n := range group {
			r := readOwned(calls[g].Reply, i)
			f := foundOwned{known: r.known}
			if r.own {
				f.attempt = s.ownAttempt(scope, workerID, n, r)
				if r.fence != "" { // without a fence any worker may have had it, and it has ended
					s.ownedBy.put(scope, workerID, n, f.attempt)
				}
			}
			found[n] = f
		}
	}
	return found, nil
}

// ownedLimit is how many attempts one script looks up.
const ownedLimit = 50

// ownAttempt returns an attempt of the worker from the reply of owned.lua.
func (s *Service) ownAttempt(scope model.Scope, workerID string, n OwnedAttempt, r ownedReply) *model.Attempt {
	run := r.run
	if run == "" {
		run = schema.RunOf(n.TaskID)
	}
	return s.beats.Attempt(model.Attempt{
		Scope: scope, TaskID: n.TaskID, RunID: run, Number: n.Number, Fence: r.fence, Timeout: r.timeout, Interval: r.interval,
		IssuedAt: r.issued, WorkerID: workerID, Deadline: r.deadline,
	})
}

// ownedCache remembers the owners of attempts, also when the store has lost them: an attempt is then adopted from here. Owners do not
// change while the store keeps the task: an entry expires long before retention could have removed the task, since another task may then
// have its name. Beats always check the attempt's membership, whatever is cached. The least recently used entries are evicted. Each entry
// has its own expiry: caches with built-in expiry have a goroutine that never ends.
type ownedCache struct {
	of *lru.Cache[string, ownedEntry]
}

type ownedEntry struct {
	attempt *model.Attempt
	until   time.Time
}

const ownedLife = time.Hour

const maxOwned = 1 << 16 // attempts

func newOwnedCache() ownedCache {
	of, _ := lru.New[string, ownedEntry](maxOwned) // fails only for size 0
	return ownedCache{of}
}

func ownedKey(scope model.Scope, workerID string, n OwnedAttempt) string {
	return workerID + "/" + schema.TaskName(scope, n.TaskID) + "#" + strconv.Itoa(n.Number)
}

func (c ownedCache) get(scope model.Scope, workerID string, n OwnedAttempt) *model.Attempt {
	e, _ := c.of.Get(ownedKey(scope, workerID, n))
	if !time.Now().Before(e.until) {
		return nil
	}
	return e.attempt
}

func (c ownedCache) put(scope model.Scope, workerID string, n OwnedAttempt, a *model.Attempt) {
	c.of.Add(ownedKey(scope, workerID, n), ownedEntry{a, time.Now().Add(ownedLife)})
}
