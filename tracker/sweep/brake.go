package sweep

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// The mass expiry brake is for what shard time cannot see: a front end that reaches Redis and is deaf to its workers. When so
// much of a scope goes silent together that this is likelier than as many deaths, the sweeper gives what would expire one more
// timeout, once: what is silent for that long as well has died. So the brake releases by itself.
//
// A task is spared by a new score in its beats set, a worker by a later check. The record keeps which score that is and the last
// beat before, so a second timeout is granted only after another beat.
const (
	// BrakeShare is the percentage of a scope that must be silent together for the brake to hold.
	BrakeShare = 50

	brakeFloor   = 50               // fewer live ones than this in a scope, or fewer silent ones, engage no brake
	silentFrom   = 60               // percent of its timeout from which on a member counts as silent
	censusEvery  = time.Second      // one census is good for so long,
	censusShare  = 20               // or for so many times what it took
	censusPage   = 1000             // members that one script counts
	censusSpared = 250              // spared ones that one script counts: each is looked for in its set too
	censusForget = 10 * time.Minute // what a scope without verdicts was found to be is forgotten then
)

// brake is what one sweeper knows of scopes in which something was about to expire. Rounds over tasks and over workers ask it
// concurrently.
type brake struct {
	service  *Service
	id       sweeperID
	timeouts *timeouts

	mu   sync.Mutex // also held while a census is taken, so that whoever comes meanwhile has its result
	seen map[model.Scope]censusResult
}

// censusResult is what the last census found of a scope.
type censusResult struct {
	at     time.Time
	good   time.Duration
	spares bool
}

func newBrake(s *Service, id sweeperID, known *timeouts) *brake {
	return &brake{service: s, id: id, timeouts: known, seen: map[model.Scope]censusResult{}}
}

// spareTasks spares what the brake is for and returns the rest, which is to be taken. With an error it returns only what does
// not end for silence: nobody dies while it is not known whether the brake spares, and nothing else waits for that.
func (b *brake) spareTasks(ctx context.Context, r *round, items []found) ([]found, error) {
	if !b.service.opts.Brake {
		return items, nil
	}
	var silent, rest []found
	for _, item := range items {
		if item.isSilent() {
			silent = append(silent, item)
		} else {
			rest = append(rest, item)
		}
	}
	others := len(rest)
	err := judge(ctx, b, r.node, silent, sparing[found]{
		silence: func(f found) (model.Scope, time.Duration) { return f.ref.Scope, schema.Duration(f.timeout, 0) },
		pieces:  func(items []found) [][]found { return bySet(items, schema.TakeLimit) },
		call: func(items []found) *store.Call {
			attempts := make([]attempt, len(items))
			for i, item := range items {
				attempts[i] = attempt{item.ref.Scope, item.ref.ID, item.member}
			}
			return b.service.scripts.brakeTasksCall(items[0].shard, spareThem, items[0].timeout, attempts)
		},
		answered: func(item found, answer brakeAnswer) {
			switch answer {
			case brakeSpares:
				r.result.MassExpiryHeld++
				b.service.metrics.brake.sparedTasks.Inc()
			case brakeLets:
				rest = append(rest, item)
			}
		},
	})
	if err != nil {
		return rest[:others], err
	}
	return rest, nil
}

// spareWorkers does the same with workers. With an error it marks all as spared: none ends then.
func (b *brake) spareWorkers(ctx context.Context, r *round, due []dueWorker) ([]dueWorker, error) {
	if !b.service.opts.Brake {
		return due, nil
	}
	var rest []dueWorker
	err := judge(ctx, b, r.node, due, sparing[dueWorker]{
		silence: func(w dueWorker) (model.Scope, time.Duration) { return w.ref.Scope, b.service.workerTimeout() },
		pieces:  piecesOf,
		call: func(workers []dueWorker) *store.Call {
			return b.service.scripts.brakeWorkersCall(workers[0].ref.Shard, spareThem, refsOf(workers))
		},
		answered: func(w dueWorker, answer brakeAnswer) {
			switch answer {
			case brakeSpares:
				r.result.MassExpiryHeld++
				b.service.metrics.brake.sparedWorkers.Inc()
				return
			case brakeAwaits:
				w.spared = true // it may be late, or have beaten: that is checked
			}
			rest = append(rest, w)
		},
	})
	if err != nil {
		for i := range due {
			due[i].spared = true
		}
		return due, err
	}
	return rest, nil
}

// sparing is how the brake asks about tasks, or about workers.
type sparing[T any] struct {
	silence  func(T) (model.Scope, time.Duration) // whose it is, and the timeout that is over
	pieces   func([]T) [][]T                      // for one call each
	call     func([]T) *store.Call
	answered func(T, brakeAnswer) // is called for each, but for those that an error leaves in doubt
}

// judge asks the brake about those that are silent. Those of scopes in which it does not spare it lets through.
func judge[T any](ctx context.Context, b *brake, n *store.Node, silent []T, of sparing[T]) error {
	over := overTimeouts{}
	for _, one := range silent {
		over.add(of.silence(one))
	}
	spares, err := b.scopes(ctx, over)
	if err != nil {
		return err
	}
	var asked []T
	for _, one := range silent {
		if scope, _ := of.silence(one); spares[scope] {
			asked = append(asked, one)
		} else {
			of.answered(one, brakeLets)
		}
	}
	pieces := of.pieces(asked)
	calls := make([]*store.Call, len(pieces))
	for i, piece := range pieces {
		calls[i] = of.call(piece)
	}
	b.service.store.Exec(ctx, n, calls)
	for i, c := range calls {
		if c.Err != nil {
			continue
		}
		for j, answer := range readBrake(c.Reply) {
			of.answered(pieces[i][j], answer)
		}
	}
	return store.FirstError(calls)
}

// overTimeouts has, of each scope with something overdue, the shortest and the longest timeout that is over.
type overTimeouts map[model.Scope]struct{ shortest, longest time.Duration }

func (o overTimeouts) add(scope model.Scope, timeout time.Duration) {
	known, ok := o[scope]
	if !ok || timeout < known.shortest {
		known.shortest = timeout
	}
	known.longest = max(known.longest, timeout)
	o[scope] = known
}

// scopes returns in which of these scopes the brake spares what is silent.
func (b *brake) scopes(ctx context.Context, over overTimeouts) (map[model.Scope]bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.service.beats.RedisNow()
	var ask []model.Scope
	for scope, timeouts := range over {
		seen, known := b.seen[scope]
		good := seen.good
		if !seen.spares { // whatever is overdue now was silent enough to be counted then
			good = min(good, timeouts.shortest*(100-silentFrom)/100)
		}
		if age := now.Sub(seen.at); !known || age < 0 || age >= good {
			ask = append(ask, scope)
		}
	}
	if len(ask) > 0 {
		if err := b.count(ctx, ask, over, now); err != nil {
			return nil, err
		}
	}
	spares := map[model.Scope]bool{}
	for scope := range over {
		if b.seen[scope].spares {
			spares[scope] = true
		}
	}
	return spares, nil
}

// count takes a census and keeps what it found. The caller holds the mutex.
func (b *brake) count(ctx context.Context, ask []model.Scope, over overTimeouts, now time.Time) error {
	start := time.Now()
	counts, err := b.takeCensus(ctx, ask)
	if err != nil {
		return err
	}
	b.service.metrics.brake.censuses.Inc()
	good := max(censusEvery, censusShare*time.Since(start))
	for scope, seen := range b.seen {
		if now.Sub(seen.at) > censusForget {
			delete(b.seen, scope)
		}
	}
	for _, scope := range ask {
		spares := counts[scope].mass() && b.engage(ctx, scope, counts[scope], over[scope].longest)
		if was := b.seen[scope].spares; spares && !was {
			b.service.log.Warn("the mass expiry brake holds: too much of a scope has gone silent at once; "+
				"what is silent for one more timeout will expire", scope.LogAttr(), "counts", counts[scope].String())
		}
		b.seen[scope] = censusResult{now, good, spares}
	}
	engaged := 0
	for _, seen := range b.seen {
		if seen.spares {
			engaged++
		}
	}
	b.service.metrics.brake.engaged.Set(float64(engaged))
	return nil
}

// engage has the brake spare in a scope; false: operators have released it. If the shard that remembers this does not answer,
// the brake spares: each shard knows of a release itself, and nothing of the others need wait.
func (b *brake) engage(ctx context.Context, scope model.Scope, counts *scopeCensus, timeout time.Duration) bool {
	st := b.service.store
	shard := b.service.homeOf(scope)
	data := fmt.Sprintf(`{"sharePct":%d,"tasks":{"live":%d,"silent":%d},"workers":{"live":%d,"silent":%d},"sweeper":%q}`,
		BrakeShare, counts.tasks.live, counts.tasks.silent, counts.workers.live, counts.workers.silent, b.id)
	call := b.service.scripts.brakeEngageCall(shard, scope, timeout+2*censusEvery, data)
	err := b.service.exec(ctx, st.Node(shard), []*store.Call{call})
	return err != nil || readBrakeEngage(call.Reply)
}
