package stats

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// An answer is good for so long, or for so many times what it took where that is more: a hundred dashboards cost what one
// does, and a costly answer never takes more than a fiftieth of the time.
const (
	snapshotLife    = time.Second
	snapshotShare   = 50
	longestSnapshot = 10 * time.Second
)

// snapshots remember answers. mu guards the map; each answer has a lock of its own, by which one asks and others wait.
type snapshots struct {
	mu    sync.Mutex
	known *lru.Cache[string, *snapshot]
}

// snapshot is one answer, or somebody who is asking for it.
type snapshot struct {
	turn  chan struct{} // holds one: whoever takes it may ask
	value any
	until time.Time
}

func newSnapshots(most int) *snapshots {
	known, _ := lru.New[string, *snapshot](most) // fails for a size of 0 only
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

// answer returns what is known by a name, or asks for it. Of those who want the same at once one asks and the others wait for
// it; what failed is asked for again by the next.
func answer[T any](ctx context.Context, s *snapshots, name string, ask func() (T, error)) (T, error) {
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
	value, err := ask()
	if err != nil {
		return none, err
	}
	now := time.Now()
	is.value, is.until = value, now.Add(max(snapshotLife, min(snapshotShare*now.Sub(began), longestSnapshot)))
	return value, nil
}

// ForgetSnapshots has the next who asks be answered anew. For tests, whose clock goes its own way.
func (s *Service) ForgetSnapshots() { s.snapshots.known.Purge() }
