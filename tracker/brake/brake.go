package brake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// The mass-expiry brake is for what shard time cannot see: a front end that reaches Redis but does not hear its workers. When so
// much of a scope falls silent together that this is likelier than as many deaths, the brake gives what would expire one more
// timeout, once: a member that is silent for that long as well expires. So the brake releases automatically.
//
// A task is held by a new score in its beats set, a worker by a later check. The record keeps that score and the last
// beat before it, so a second timeout is granted only after another beat.
const (
	// Share is the percentage of a scope that must be silent at once for the brake to engage.
	Share = 50

	floor        = 50               // with fewer live or fewer silent members in a scope the brake does not engage
	silentFrom   = 60               // percent of its timeout after which a member counts as silent
	censusEvery  = time.Second      // a census is valid for this long,
	censusShare  = 20               // or for this many times its own duration
	censusForget = 10 * time.Minute // after this long the census of a scope without verdicts is dropped

	workersPerCall = 25
)

// Brake is what one sweeper knows about scopes in which something was about to expire. Its methods may be called concurrently.
type Brake struct {
	service  *Service
	sweeper  string // its ID, for events
	timeouts Timeouts

	mu   sync.Mutex // also held during a census, so that concurrent callers share its result
	seen map[model.Scope]censusResult
}

// Timeouts are the heartbeat timeouts in use, in ms, that a sweeper knows.
type Timeouts interface {
	Of(shard int) []string
	Learn(shard int, inUse []string) (more bool) // reports whether there are new ones
}

// censusResult is the result of the last census of a scope.
type censusResult struct {
	at      time.Time
	valid   time.Duration
	engaged bool
}

// NewBrake returns the brake of one sweeper.
func NewBrake(s *Service, sweeper string, known Timeouts) *Brake {
	return &Brake{service: s, sweeper: sweeper, timeouts: known, seen: map[model.Scope]censusResult{}}
}

// Decision is what the brake decides about a silent member.
type Decision int64

// The values are those that the scripts reply.
const (
	// Wait: the member was not silent for its timeout when the brake checked it, or it could not be checked. It must not expire
	// before the brake has decided again.
	Wait   Decision = 0
	Hold   Decision = 1 // it got a second timeout period
	Expire Decision = 2
)

// Attempt is a running attempt in the beats set of its heartbeat timeout.
type Attempt struct {
	Shard   int
	Timeout string // ms
	Scope   model.Scope
	TaskID  string
	Member  string // of the set
}

// silence is how long a member may be silent; members of one set can be held by the same call.
type silence struct {
	scope   model.Scope
	timeout time.Duration
	set     beatsSet
}

// DecideTasks returns the decision about each of these attempts, which are silent for their timeouts. Attempts of one set must be
// adjacent. With an error, the decisions that could not be made are Wait.
func (b *Brake) DecideTasks(ctx context.Context, n *store.Node, silent []Attempt) ([]Decision, error) {
	members := make([]silence, len(silent))
	for i, a := range silent {
		members[i] = silence{a.Scope, schema.Duration(a.Timeout, 0), a.set()}
	}
	s := b.service
	return b.decide(ctx, n, members, schema.TakeLimit, s.metrics.heldTasks, func(piece []int) *store.Call {
		return s.scripts.tasksCall(hold, pick(silent, piece))
	})
}

// DecideWorkers does the same for workers, of which those of one shard must be adjacent.
func (b *Brake) DecideWorkers(ctx context.Context, n *store.Node, silent []*schema.WorkerRef) ([]Decision, error) {
	s := b.service
	members := make([]silence, len(silent))
	for i, w := range silent {
		members[i] = silence{w.Scope, s.opts.WorkerTimeout, beatsSet{shard: w.Shard}}
	}
	return b.decide(ctx, n, members, workersPerCall, s.metrics.heldWorkers, func(piece []int) *store.Call {
		return s.scripts.workersCall(hold, pick(silent, piece))
	})
}

// pick returns the items at these indexes.
func pick[T any](items []T, at []int) []T {
	picked := make([]T, len(at))
	for i, j := range at {
		picked[i] = items[j]
	}
	return picked
}

// decide runs the scripts that decide about members of scopes in which the brake is engaged, with at most that many per call. All
// others expire.
func (b *Brake) decide(ctx context.Context, n *store.Node, members []silence, atMost int, held prometheus.Counter,
	call func(piece []int) *store.Call) ([]Decision, error) {
	decisions := make([]Decision, len(members))
	if !b.service.opts.Enabled {
		for i := range decisions {
			decisions[i] = Expire
		}
		return decisions, nil
	}
	engaged, err := b.engagedScopes(ctx, members)
	if err != nil {
		return decisions, err
	}
	var engagedMembers []int
	for i, m := range members {
		if decisions[i] = Expire; engaged[m.scope] {
			decisions[i] = Wait
			engagedMembers = append(engagedMembers, i)
		}
	}
	pieces := schema.Runs(engagedMembers, atMost, func(i, j int) bool { return members[i].set == members[j].set })
	calls := store.CallEach(pieces, call)
	if len(calls) > 0 {
		b.service.store.Exec(ctx, n, calls)
	}
	for i, c := range calls {
		if c.Err != nil {
			continue
		}
		for j, decision := range readDecisions(c.Reply) {
			decisions[pieces[i][j]] = decision
			if decision == Hold {
				held.Inc()
			}
		}
	}
	return decisions, store.FirstError(calls)
}

// overdueTimeouts are, for each scope with silent members, the shortest and the longest timeout that has passed.
type overdueTimeouts map[model.Scope]struct{ shortest, longest time.Duration }

func overdueTimeoutsOf(members []silence) overdueTimeouts {
	over := overdueTimeouts{}
	for _, m := range members {
		known, ok := over[m.scope]
		if !ok || m.timeout < known.shortest {
			known.shortest = m.timeout
		}
		known.longest = max(known.longest, m.timeout)
		over[m.scope] = known
	}
	return over
}

// engagedScopes returns the scopes of these members in which the brake is engaged. It takes a census if the last one is too old.
func (b *Brake) engagedScopes(ctx context.Context, members []silence) (map[model.Scope]bool, error) {
	over := overdueTimeoutsOf(members)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.service.beats.RedisNow()
	var scopes []model.Scope
	for scope, timeouts := range over {
		seen, known := b.seen[scope]
		valid := seen.valid
		if !seen.engaged { // whatever is overdue now was silent enough to be counted then
			valid = min(valid, timeouts.shortest*(100-silentFrom)/100)
		}
		if age := now.Sub(seen.at); !known || age < 0 || age >= valid {
			scopes = append(scopes, scope)
		}
	}
	if len(scopes) > 0 {
		if err := b.count(ctx, scopes, over, now); err != nil {
			return nil, err
		}
	}
	engaged := map[model.Scope]bool{}
	for scope := range over {
		engaged[scope] = b.seen[scope].engaged
	}
	return engaged, nil
}

// count takes a census and stores its result. The caller holds the mutex.
func (b *Brake) count(ctx context.Context, scopes []model.Scope, over overdueTimeouts, now time.Time) error {
	start := time.Now()
	counts, err := b.takeCensus(ctx, scopes)
	if err != nil {
		return err
	}
	b.service.metrics.censuses.Inc()
	valid := max(censusEvery, censusShare*time.Since(start))
	for scope, seen := range b.seen {
		if now.Sub(seen.at) > censusForget {
			delete(b.seen, scope)
		}
	}
	for _, scope := range scopes {
		engaged := counts[scope].mass() && b.engage(ctx, scope, counts[scope], over[scope].longest)
		if was := b.seen[scope].engaged; engaged && !was {
			b.service.log.Warn("the mass-expiry brake holds: too much of a scope has gone silent at once; "+
				"what is silent for a second timeout period will expire", scope.LogAttr(), "counts", counts[scope].String())
		}
		b.seen[scope] = censusResult{now, valid, engaged}
	}
	engaged := 0
	for _, seen := range b.seen {
		if seen.engaged {
			engaged++
		}
	}
	b.service.metrics.engaged.Set(float64(engaged))
	return nil
}

// engage engages the brake in a scope; false: operators have released it. If the shard that records this does not respond, the
// brake engages: each shard knows of a release itself, and members in other shards need not wait.
func (b *Brake) engage(ctx context.Context, scope model.Scope, counts *scopeCensus, timeout time.Duration) bool {
	st := b.service.store
	shard := b.service.homeOf(scope)
	data := fmt.Sprintf(`{"sharePct":%d,"tasks":{"live":%d,"silent":%d},"workers":{"live":%d,"silent":%d},"sweeper":%q}`,
		Share, counts.tasks.live, counts.tasks.silent, counts.workers.live, counts.workers.silent, b.sweeper)
	call := b.service.scripts.engageCall(shard, scope, timeout+2*censusEvery, data)
	st.Exec(ctx, st.Node(shard), []*store.Call{call})
	return call.Err != nil || readEngage(call.Reply)
}
