package tracker

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/lua"
)

// listener hears, with one subscription for the whole replica, what becomes ready: scripts say so on a channel of their
// database. It begins with the first claim: a replica without any needs none.
type listener struct {
	t      *Tracker
	once   sync.Once
	cancel context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	closed bool
}

func (l *listener) start() {
	l.once.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.closed {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		l.cancel = cancel
		l.done.Go(l.t.store.guard("hearing what becomes ready", func() { l.run(ctx) }))
	})
}

func (l *listener) run(ctx context.Context) {
	sub := l.t.store.subscribe(ctx, lua.WakeChannel(l.t.store.database()))
	defer func() { _ = sub.Close() }()
	messages := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			switch m := m.(type) {
			case *redis.Subscription: // the first time, and after every lost connection: words may have been missed
				l.t.rooms.wakeAll()
				l.t.nudges.all()
			case *redis.Message:
				l.hear(m.Payload)
			}
		}
	}
}

// hear reads <shard>/<class>; an empty class means that everything of a queue may be ready: <shard>/<scope>/<queue>.
// w/<scope>/<worker> is for the claims of one worker.
func (l *listener) hear(word string) {
	number, name, _ := strings.Cut(word, "/")
	if number == "w" {
		l.t.nudges.nudge(name)
		return
	}
	shard, err := strconv.Atoi(number)
	if err != nil || shard < 0 || shard >= l.t.store.shards() {
		return
	}
	p := strings.SplitN(name, "/", 4)
	if len(p) < 3 {
		return
	}
	room := l.t.rooms.find(strings.Join(p[:3], "/"))
	if room == nil {
		return
	}
	if c, ok := parseClass(name); ok {
		room.woken(shard, c.group())
	} else {
		room.lookAgain()
	}
}

func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	cancel := l.cancel
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	l.done.Wait()
}

// database is the number of the deployment's own.
func (s *store) database() int {
	if s.single == nil {
		return 0
	}
	return s.single.Options().DB
}

// subscribe opens a subscription of its own connection. On Cluster one node is enough: messages reach all of them.
func (s *store) subscribe(ctx context.Context, channel string) *redis.PubSub {
	if s.cluster != nil {
		return s.cluster.Subscribe(ctx, channel)
	}
	return s.single.Subscribe(ctx, channel)
}
