package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Durability is what an acknowledged creation, completion, new attempt or cancel outlives.
type Durability string

const (
	Memory     Durability = "memory"     // nothing more than Redis's own settings promise
	Fsync      Durability = "fsync"      // a crash of the Redis server: it is in the append-only file, and synced
	Replicated Durability = "replicated" // a failover: replicas have it
)

// MaxDurableReplicas bounds Options.DurableReplicas; nobody keeps more replicas of one primary.
const MaxDurableReplicas = 16

// guarantee is how one flush finds out that what it wrote is safe. Its commands go last in the pipeline of the
// writes: on another connection, or after a failover, the answer would be about something else.
type guarantee interface {
	ask(ctx context.Context, k *schema.ShardKeys) []*redis.Cmd
	confirmed([]*redis.Cmd) error // nil, or why not
}

// durability is what this deployment promises of its durable transitions.
type durability struct {
	servers     *servers
	deadlines   deadlines
	opts        Options
	unconfirmed prometheus.Counter // transitions

	guarantee guarantee // what durable transitions are answered by; nil with Memory. It is set by checkDurability
}

// newGuarantee returns nil for Memory.
func (s *durability) newGuarantee(hasWaitAOF bool) guarantee {
	timeout := s.deadlines.confirmation()
	switch {
	case s.opts.Durability == Replicated:
		return waiting{args: []any{"wait", s.opts.DurableReplicas, model.Millis(timeout)}, want: s.opts.DurableReplicas, timeout: timeout}
	case s.opts.Durability == Fsync && hasWaitAOF:
		return waiting{args: []any{"waitaof", 1, 0, model.Millis(timeout)}, want: 1, timeout: timeout}
	case s.opts.Durability == Fsync:
		return syncedAlways{}
	}
	return nil
}

// waiting asks with WAIT or WAITAOF. Both are about the connection's own last write, and since Redis 7.2 one that has
// not written, as when every script of the flush found its work done before, is told that all is well. So each flush
// writes: what it repeats is then confirmed with it.
type waiting struct {
	args    []any
	want    int
	timeout time.Duration
}

func (w waiting) ask(ctx context.Context, k *schema.ShardKeys) []*redis.Cmd {
	return []*redis.Cmd{redis.NewCmd(ctx, "set", k.Confirmed, 1), redis.NewCmd(ctx, w.args...)}
}

func (w waiting) confirmed(cmds []*redis.Cmd) error {
	if err := cmds[0].Err(); err != nil {
		return err
	}
	v, err := cmds[1].Result()
	if err != nil {
		return err
	}
	if list, ok := v.([]any); ok && len(list) > 0 { // WAITAOF: {this server, replicas}
		v = list[0]
	}
	if n, _ := v.(int64); n < int64(w.want) {
		return fmt.Errorf("%s: %d of %d confirmed within %v", w.args[0], n, w.want, w.timeout)
	}
	return nil
}

// syncedAlways is for Redis before 7.2, which answers a write only after it is synced if it is configured so. That
// may change under a running deployment, by an operator or a failover, so each flush asks.
type syncedAlways struct{}

// syncedBy is the configuration under which Redis syncs before it answers, a rewrite of the file under way or not.
var syncedBy = map[string]string{"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}

func (syncedAlways) ask(ctx context.Context, _ *schema.ShardKeys) []*redis.Cmd {
	args := []any{"config", "get"}
	for name := range syncedBy {
		args = append(args, name)
	}
	return []*redis.Cmd{redis.NewCmd(ctx, args...)}
}

func (syncedAlways) confirmed(cmds []*redis.Cmd) error {
	list, err := cmds[0].Slice()
	if err != nil {
		return fmt.Errorf("CONFIG GET: %w", err)
	}
	is := Reply(list).Strings()
	var wrong []string
	for name, want := range syncedBy {
		if i := slices.Index(is, name); i < 0 || i+1 == len(is) || is[i+1] != want {
			wrong = append(wrong, name+" "+want)
		}
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		return fmt.Errorf("redis does not sync each write before it answers; it needs %s", strings.Join(wrong, ", "))
	}
	return nil
}

// notConfirmed is the error of a call that Redis has done and that is not safe.
func (s *durability) notConfirmed(why error) error {
	s.unconfirmed.Inc()
	e := &model.Error{Code: model.Unavailable, RetryAfter: time.Second, Cause: why}
	if s.opts.Durability == Replicated {
		e.Message = fmt.Sprintf("not confirmed: Redis has done it, but not %d of its replicas said in time that they have it, "+
			"so a failover could undo it; send the same request again, which is answered once they do", s.opts.DurableReplicas)
	} else {
		e.Message = "not confirmed: Redis has done it, but did not say in time that it is synced to disk, " +
			"so a crash could undo it; send the same request again, which is answered once it is"
	}
	return e
}

// mark is the shard of a node in which its flushes write before they wait. It moves on when the shard moves away.
type mark struct{ shard atomic.Int64 }

func (m *mark) of(s *topology, n *Node, calls []*Call) int {
	shard := int(m.shard.Load())
	if s.Node(shard) != n {
		shard = calls[0].Shard
		m.shard.Store(int64(shard))
	}
	return shard
}

// moveOn takes the next shard of the node.
func (m *mark) moveOn(s *topology, n *Node) {
	shards := s.ByNode()[n]
	if i := slices.Index(shards, int(m.shard.Load())); len(shards) > 0 {
		m.shard.Store(int64(shards[(i+1)%len(shards)]))
	}
}

// checkDurability refuses to start on a server that cannot keep the promise.
func (s *durability) checkDurability(ctx context.Context, info map[string]string) error {
	if s.opts.Durability == Memory {
		return nil
	}
	version, known := info["redis_version"]
	if !known {
		return fmt.Errorf("durability is %s, but the store at %s is no real Redis and keeps nothing; use one, or durability memory",
			s.opts.Durability, redactURL(s.servers.opts.URL))
	}
	s.guarantee = s.newGuarantee(atLeast(version, 7, 2))
	return s.servers.eachPrimary(ctx, s.checkPrimary)
}

func (s *servers) eachPrimary(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	if s.cluster != nil {
		return s.cluster.ForEachMaster(ctx, f)
	}
	return f(ctx, s.single)
}

func (s *durability) checkPrimary(ctx context.Context, c *redis.Client) error {
	if s.opts.Durability == Replicated {
		if n := c.InfoMap(ctx, "replication").Item("Replication", "connected_slaves"); n != "" {
			if have, err := strconv.Atoi(n); err == nil && have < s.opts.DurableReplicas {
				s.opts.Logger.Warn("fewer replicas are connected than must confirm creations and completions, "+
					"which are answered 503 until there are enough", "connected", have, "durableReplicas", s.opts.DurableReplicas)
			}
		}
		return nil
	}
	var cmds []*redis.Cmd
	if g, ok := s.guarantee.(waiting); ok {
		// What was written to this connection so far is nothing, so it waits for nothing: only the refusal counts.
		cmds = []*redis.Cmd{redis.NewCmd(ctx, "ping"), redis.NewCmd(ctx, g.args...)}
	} else {
		cmds = s.guarantee.ask(ctx, nil)
	}
	pipe := c.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx)
	if IsNetwork(cmds[len(cmds)-1].Err()) {
		return nil // it is away; each flush asks again
	}
	if err := s.guarantee.confirmed(cmds); err != nil {
		command := "CONFIG|GET"
		if _, ok := s.guarantee.(waiting); ok {
			command = "WAITAOF"
		}
		return fmt.Errorf("durability is fsync, but redis at %s does not give it: %w; set appendonly yes and appendfsync always "+
			"in redis.conf (and by CONFIG SET), allow Lubdub's user %s, or use durability replicated or memory",
			redactURL(s.servers.opts.URL), err, command)
	}
	return nil
}
