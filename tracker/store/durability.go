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

// Durability is what an acknowledged creation, completion, new attempt or cancel survives.
type Durability string

const (
	Memory     Durability = "memory"     // no more than Redis's own settings promise
	Fsync      Durability = "fsync"      // a crash of the Redis server: the write is synced to the append-only file
	Replicated Durability = "replicated" // a failover: replicas have the write
)

// MaxDurableReplicas bounds Options.DurableReplicas.
const MaxDurableReplicas = 16

// guarantee checks that the writes of one flush are safe. Its commands go last in the pipeline of the writes: on another connection, or
// after a failover, the reply would be about other writes.
type guarantee interface {
	commands(ctx context.Context, k *schema.ShardKeys) []*redis.Cmd
	confirmed([]*redis.Cmd) error // nil, or why the writes are not safe
}

// durability is the guarantee that this deployment gives for its durable transitions.
type durability struct {
	servers     *servers
	deadlines   deadlines
	opts        Options
	unconfirmed prometheus.Counter // counts transitions

	guarantee guarantee // checked for durable transitions; nil with Memory. checkDurability sets it
}

// newGuarantee returns the guarantee for the configured durability, nil for Memory.
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

// waiting uses WAIT or WAITAOF. Both are about the last write of their own connection. Since Redis 7.2 a connection without a write, as
// when every script of the flush found its work done before, gets success at once. So each flush writes a key, and what a repeated call
// found done is confirmed with it.
type waiting struct {
	args    []any
	want    int
	timeout time.Duration
}

func (w waiting) commands(ctx context.Context, k *schema.ShardKeys) []*redis.Cmd {
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

// syncedAlways is for Redis before 7.2, which, so configured, answers a write only after it is synced. An operator or a failover may
// change that setting at any time, so each flush reads it.
type syncedAlways struct{}

// syncedBy is the configuration under which Redis syncs before it answers, also during a rewrite of the file.
var syncedBy = map[string]string{"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}

func (syncedAlways) commands(ctx context.Context, _ *schema.ShardKeys) []*redis.Cmd {
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

// notConfirmed returns the error of a call that Redis has executed but not confirmed as safe.
func (s *durability) notConfirmed(why error) error {
	s.unconfirmed.Inc()
	e := &model.Error{Code: model.Unavailable, RetryAfter: time.Second, Cause: why}
	if s.opts.Durability == Replicated {
		e.Message = fmt.Sprintf("not confirmed: Redis has done it, but not %d of its replicas confirmed it in time, "+
			"so a failover could undo it; send the same request again, which is answered once they do", s.opts.DurableReplicas)
	} else {
		e.Message = "not confirmed: Redis has done it, but did not say in time that it is synced to disk, " +
			"so a crash could undo it; send the same request again, which is answered once it is"
	}
	return e
}

// mark is the shard of a node to which its flushes write before they wait. It changes when the shard moves away.
type mark struct{ shard atomic.Int64 }

func (m *mark) of(s *topology, n *Node, calls []*Call) int {
	shard := int(m.shard.Load())
	if s.Node(shard) != n {
		shard = calls[0].Shard
		m.shard.Store(int64(shard))
	}
	return shard
}

// moveOn switches to the next shard of the node.
func (m *mark) moveOn(s *topology, n *Node) {
	shards := s.ByNode()[n]
	if i := slices.Index(shards, int(m.shard.Load())); len(shards) > 0 {
		m.shard.Store(int64(shards[(i+1)%len(shards)]))
	}
}

// checkDurability returns an error when a server cannot give the configured durability.
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
		// Nothing was written on this connection so far, so the command returns at once: it only shows whether Redis refuses it.
		cmds = []*redis.Cmd{redis.NewCmd(ctx, "ping"), redis.NewCmd(ctx, g.args...)}
	} else {
		cmds = s.guarantee.commands(ctx, nil)
	}
	pipe := c.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx)
	if IsNetwork(cmds[len(cmds)-1].Err()) {
		return nil // the server is unreachable; each flush checks again
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
