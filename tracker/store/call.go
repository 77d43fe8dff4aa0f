package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/lane"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Call is one script call on one shard, with its result.
type Call struct {
	Shard  int
	Script *lua.Script
	Argv   []any // EVALSHA and all its arguments
	Reply  Reply // nil until the call has succeeded
	Err    error
	Until  time.Time // when the caller must have the result; zero: the usual time of a round trip

	waiter *lane.Waiter // signalled when Reply or Err is set
	signed bool         // the actor has been appended to Argv
}

// NewCall returns a call of a script that declares these keys.
func NewCall(shard int, script *lua.Script, keys []string, args ...any) *Call {
	argv := make([]any, 0, 3+len(keys)+len(args))
	argv = append(argv, "evalsha", script.SHA, len(keys))
	for _, k := range keys {
		argv = append(argv, k)
	}
	return &Call{Shard: shard, Script: script, Argv: append(argv, args...)}
}

// CallEach returns one call for each item.
func CallEach[T any](items []T, call func(T) *Call) []*Call {
	calls := make([]*Call, len(items))
	for i, item := range items {
		calls[i] = call(item)
	}
	return calls
}

// FirstError returns the error of the first call that failed, or nil.
func FirstError(calls []*Call) error {
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

// Exec runs calls in one round trip to one node, bypassing its lanes, and sets the reply or error of each. A script that the node does
// not have (after a restart, failover or flush) is loaded and run again; a call whose shard has moved is sent to its new node. Every
// script is idempotent, so a call whose reply was lost may be repeated.
func (s *runner) Exec(ctx context.Context, n *Node, calls []*Call) {
	sign(ctx, calls)
	s.execWith(ctx, n, calls, nil)
}

// sign appends the actor to calls of scripts that write events.
func sign(ctx context.Context, calls []*Call) {
	by := model.ActorOf(ctx)
	for _, c := range calls {
		if c.Script.Events && !c.signed {
			c.Argv, c.signed = append(c.Argv, by), true
		}
	}
}

// execWith runs calls as Exec does, and fails each call for which the guarantee is not confirmed. A nil guarantee requires nothing.
func (s *runner) execWith(ctx context.Context, n *Node, calls []*Call, g guarantee) {
	if s.deadlines.IsLate(ctx, g) {
		for _, c := range calls {
			c.Reply, c.Err = nil, s.deadlines.TooLateError()
		}
		return
	}
	ctx, cancel := s.deadlines.tripContext(ctx, calls)
	defer cancel()
	s.runOn(ctx, n, calls, g)
	if s.servers.cluster != nil {
		s.redirect(ctx, calls, g)
	}
}

func (s *runner) runOn(ctx context.Context, n *Node, calls []*Call, g guarantee) {
	if refuse := s.refusesAll(n); refuse != nil {
		for _, c := range calls {
			c.Reply, c.Err = nil, refuse()
		}
		return
	}
	s.roundTrip(ctx, n, calls, trip{guarantee: g})
	var missing []*Call
	for _, c := range calls {
		if isNoScript(c.Err) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		s.roundTrip(ctx, n, missing, trip{guarantee: g, load: true})
	}
}

// trip is what a round trip includes in addition to its calls.
type trip struct {
	guarantee guarantee // nil: none is required
	load      bool      // load the scripts first
	asking    bool      // send ASKING before each call: its shard may still be migrating to the node
}

// roundTrip runs calls in one pipeline on one connection.
func (s *runner) roundTrip(ctx context.Context, n *Node, calls []*Call, with trip) {
	var cmds []redis.Cmder
	if with.load {
		cmds = loadScripts(ctx, calls)
	}
	own := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		if with.asking {
			cmds = append(cmds, redis.NewCmd(ctx, "asking"))
		}
		own[i] = redis.NewCmd(ctx, c.Argv...)
		cmds = append(cmds, own[i])
	}
	var confirmations []*redis.Cmd
	if with.guarantee != nil {
		confirmations = with.guarantee.commands(ctx, s.keyspace.Keys[n.mark.of(s.topology, n, calls)])
		for _, cmd := range confirmations {
			cmds = append(cmds, cmd)
		}
	}
	n.trips.Add(1)
	pipe := n.client.Pipeline()
	_ = pipe.BatchProcess(ctx, cmds...)
	start := time.Now()
	_, err := pipe.Exec(ctx) // each command has its own error
	took := time.Since(start)
	s.metrics.tripped(took, err)
	s.topology.noteSilence(n, with.guarantee, took, err)
	var doubt error
	if with.guarantee != nil {
		if doubt = with.guarantee.confirmed(confirmations); IsRedirect(doubt) {
			n.mark.moveOn(s.topology, n)
		}
	}
	for i, c := range calls {
		if c.take(own[i]); c.Err == nil && doubt != nil {
			c.Err = s.durability.notConfirmed(doubt)
		}
	}
}

// loadScripts returns one SCRIPT LOAD for each distinct script of the calls.
func loadScripts(ctx context.Context, calls []*Call) []redis.Cmder {
	var cmds []redis.Cmder
	loaded := map[*lua.Script]bool{}
	for _, c := range calls {
		if !loaded[c.Script] {
			loaded[c.Script] = true
			cmds = append(cmds, redis.NewCmd(ctx, "script", "load", c.Script.Source))
		}
	}
	return cmds
}

func (c *Call) take(cmd *redis.Cmd) {
	v, err := cmd.Result()
	if err != nil {
		c.Reply, c.Err = nil, err
		return
	}
	c.Err = nil
	if list, ok := v.([]any); ok {
		c.Reply = list
	} else {
		c.Reply = Reply{v}
	}
}

func isNoScript(err error) bool {
	var re redis.Error
	return errors.As(err, &re) && strings.HasPrefix(re.Error(), "NOSCRIPT")
}

// IsNetwork reports whether err is a connection error and not an error reply of Redis.
func IsNetwork(err error) bool {
	var re redis.Error
	return err != nil && !errors.As(err, &re)
}

// EachShard runs one call on every shard through the lanes of their nodes. It returns the calls in the order of the shards, and the error
// of the first one that failed.
func (s *runner) EachShard(ctx context.Context, op string, call func(shard int, k *schema.ShardKeys) *Call) ([]*Call, error) {
	calls := make([]*Call, s.keyspace.Shards())
	for shard, k := range s.keyspace.Keys {
		calls[shard] = call(shard, k)
	}
	s.DoAll(ctx, op, calls)
	return calls, FirstError(calls)
}

// AtOnce returns how many shards one call of a multi-shard script may cover: on one server, as many as do not block Redis for long; on
// Cluster one, since a script may not touch two shards there.
func (s *runner) AtOnce() int {
	if s.servers.cluster != nil {
		return 1
	}
	return 16
}

// Together groups shards so that one call may cover each group.
func (s *runner) Together(shards []int) [][]int {
	return slices.Collect(slices.Chunk(shards, s.AtOnce()))
}

// AllTogether groups all shards as Together does.
func (s *runner) AllTogether() [][]int {
	all := make([]int, s.keyspace.Shards())
	for i := range all {
		all[i] = i
	}
	return s.Together(all)
}

// ExecEach runs calls, one for each group of shards, and passes the result of every shard to `each`. A reply is the wall time in ms,
// followed by one list for each shard. It returns the error of the first call that failed.
func (s *runner) ExecEach(ctx context.Context, n *Node, calls []*Call, groups [][]int, each func(shard int, now int64, r Reply)) error {
	s.Exec(ctx, n, calls)
	if err := FirstError(calls); err != nil {
		return err
	}
	for i, c := range calls {
		for j, shard := range groups[i] {
			each(shard, c.Reply.Int(0), c.Reply.List(1+j))
		}
	}
	return nil
}
