package queues

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// listener receives, with one subscription for the whole replica, what becomes ready: scripts announce it on a channel of their
// database. It starts with the first claim, since a replica without claims needs none.
type listener struct {
	queues *Service
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
		l.done.Go(l.queues.store.Guard("receiving wake-ups of ready tasks", func() { l.run(ctx) }))
	})
}

func (l *listener) run(ctx context.Context) {
	l.queues.store.Subscribe(ctx, lua.WakeChannel(l.queues.store.Database()), func() {
		l.queues.waitlists.wakeAll()
		l.queues.nudges.all()
	}, l.receive)
}

// receive handles <shard>/<class>, and <shard>/<scope>/<queue> when everything of a queue may be ready; w/<scope>/<worker> is for the
// claims of one worker.
func (l *listener) receive(message string) {
	number, name, _ := strings.Cut(message, "/")
	if number == "w" {
		l.queues.nudges.nudge(name)
		return
	}
	shard, err := strconv.Atoi(number)
	if err != nil || shard < 0 || shard >= l.queues.store.Shards() {
		return
	}
	p := strings.SplitN(name, "/", 4)
	if len(p) < 3 {
		return
	}
	list := l.queues.waitlists.find(strings.Join(p[:3], "/"))
	if list == nil {
		return
	}
	if c, ok := schema.ParseClass(name); ok {
		list.woken(shard, c.Group())
	} else {
		list.matchAll()
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
