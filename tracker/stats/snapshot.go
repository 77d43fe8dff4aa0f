package stats

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// How long a result is valid, or how many times its own cost if that is longer: a hundred dashboards cost what one does, and a
// costly result never takes more than a fiftieth of the time.
const (
	snapshotLife    = time.Second
	snapshotShare   = 50
	longestSnapshot = 10 * time.Second
)

// snapshots are cached results. mu protects the map; each result has its own lock, with which one caller computes it while others
// wait.
type snapshots struct {
	mu    sync.Mutex
	known *lru.Cache[string, *snapshot]
}

// snapshot is one result, or a computation in progress.
type snapshot struct {
	turn  chan struct{} // has one token: the caller that takes it may compute
	value any
	until time.Time
}

func newSnapshots(most int) *snapshots {
	known, _ := lru.New[string, *snapshot](most) // fails only for a size of 0
	return &snapshots{known: known}
}

func (s *snapshots) of(name string) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, ok := s.known.Get(name)
	if !ok {
		is = &snapshot{turn: make(chan struct{}, 1)}
		is.turn <- struct{}{}
		s.known.Add(name, is)
	}
	return is
}

// answer returns the cached result of a name, or computes it. Of concurrent callers one computes it and the others wait; after an
// error the next caller tries again.
func answer[T any](ctx context.Context, s *snapshots, name string, compute func() (T, error)) (T, error) {
	is := s.of(name)
	var none T
	select {
	case <-is.turn:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	defer func() { is.turn <- struct{}{} }()
	began := time.Now()
	if began.Before(is.until) {
		return is.value.(T), nil
	}
	value, err := compute()
	if err != nil {
		return none, err
	}
	now := time.Now()
	is.value, is.until = value, now.Add(max(snapshotLife, min(snapshotShare*now.Sub(began), longestSnapshot)))
	return value, nil
}

// ForgetSnapshots drops all cached results. It is for tests, whose clock is independent of the cache's.
func (s *Service) ForgetSnapshots() { s.snapshots.known.Purge() }
