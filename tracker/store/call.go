package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/lane"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Call is one script to run on one shard, and what it answered.
type Call struct {
	Shard  int
	Script *lua.Script
	Argv   []any // EVALSHA and all its arguments
	Reply  Reply
	Err    error
	Wait   *lane.Waiter
	Until  time.Time // when its caller must have its answer; zero: it waits as long as a round trip takes
}

func NewCall(shard int, script *lua.Script, keys []string, args ...any) *Call {
	argv := make([]any, 0, 3+len(keys)+len(args))
	argv = append(argv, "evalsha", script.SHA, len(keys))
	for _, k := range keys {
		argv = append(argv, k)
	}
	return &Call{Shard: shard, Script: script, Argv: append(argv, args...)}
}

// Exec runs calls in one round trip to one node and gives each its reply or its error. A script that the node
// does not know (it restarted, failed over, was flushed) is loaded and run again; a shard that has moved to
// another node is asked there. Every script is idempotent, so a call whose reply was lost may be repeated.
func (s *Store) Exec(ctx context.Context, n *Node, calls []*Call) { s.execWith(ctx, n, calls, nil) }

// execWith gives no call a success for which the guarantee does not stand; nil: none is asked for.
func (s *Store) execWith(ctx context.Context, n *Node, calls []*Call, g guarantee) {
	if s.IsLate(ctx, g) {
		for _, c := range calls {
			c.Reply, c.Err = nil, s.Late()
		}
		return
	}
	ctx, cancel := s.tripContext(ctx, calls)
	defer cancel()
	s.runOn(ctx, n, calls, g)
	if s.cluster != nil {
		s.redirect(ctx, calls, g)
	}
}

func (s *Store) runOn(ctx context.Context, n *Node, calls []*Call, g guarantee) {
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

// trip is what goes into a round trip besides its calls.
type trip struct {
	guarantee guarantee // nil: none is asked for
	load      bool      // bring the scripts
	asking    bool      // say before each call that its shard may still be on its way to the node
}

// roundTrip runs calls in one pipeline on one connection.
func (s *Store) roundTrip(ctx context.Context, n *Node, calls []*Call, with trip) {
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
	var asked []*redis.Cmd
	if with.guarantee != nil {
		asked = with.guarantee.ask(ctx, s.Keys[n.mark.of(s, n, calls)])
		for _, cmd := range asked {
			cmds = append(cmds, cmd)
		}
	}
	pipe := n.client.Pipeline()
	_ = pipe.BatchProcess(ctx, cmds...)
	start := time.Now()
	_, err := pipe.Exec(ctx) // each command carries its own error
	s.heardNothing(n, with.guarantee, time.Since(start), err)
	var doubt error
	if with.guarantee != nil {
		if doubt = with.guarantee.confirmed(asked); IsRedirect(doubt) {
			n.mark.moveOn(s, n)
		}
	}
	for i, c := range calls {
		if c.take(own[i]); c.Err == nil && doubt != nil {
			c.Err = s.notConfirmed(doubt)
		}
	}
}

// AtOnce is how many shards one call may be about of a script that takes many: as many as do not hold up Redis for long
// on one server, one on Cluster, where a script may not touch two.
func (s *Store) AtOnce() int {
	if s.cluster != nil {
		return 1
	}
	return 16
}

// Together groups shards by the calls that may be about them.
func (s *Store) Together(shards []int) [][]int {
	return slices.Collect(slices.Chunk(shards, s.AtOnce()))
}

// AllTogether groups all shards.
func (s *Store) AllTogether() [][]int {
	all := make([]int, s.Shards())
	for i := range all {
		all[i] = i
	}
	return s.Together(all)
}

// ExecEach runs calls, each about one group of shards, and hands over what each says of every shard: the reply is the
// wall's ms and then one list for each shard.
func (s *Store) ExecEach(ctx context.Context, n *Node, calls []*Call, groups [][]int, each func(shard int, now int64, r Reply)) error {
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

// FirstError returns the error of the first call that failed, nil when all went through.
func FirstError(calls []*Call) error {
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

// EachShard runs one call on every shard through the lanes of their nodes. Calls stand in the order of the shards; the error
// is that of the first one that failed.
func (s *Store) EachShard(ctx context.Context, op string, call func(shard int, k *schema.ShardKeys) *Call) ([]*Call, error) {
	calls := make([]*Call, s.Shards())
	for shard, k := range s.Keys {
		calls[shard] = call(shard, k)
	}
	s.DoAll(ctx, op, calls)
	return calls, FirstError(calls)
}

// loadScripts brings each script of the calls once.
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

// IsNetwork tells an error of the connection from an answer of Redis.
func IsNetwork(err error) bool {
	var re redis.Error
	return err != nil && !errors.As(err, &re)
}

// Do runs one call through its node's lane and waits for its fate.
func (s *Store) Do(ctx context.Context, op string, c *Call) (Reply, error) {
	s.DoAll(ctx, op, []*Call{c})
	return c.Reply, c.Err
}

// DoAll runs calls through the lanes of their nodes and waits until each has its fate. Their errors are
// tracker errors then. Calls about one shard run in their order.
func (s *Store) DoAll(ctx context.Context, op string, calls []*Call) {
	s.doAllIn(ctx, op, calls, func(n *Node) *lane.Lane[*Call] { return n.Calls })
}

// DoBulk does what doAll does for lists and other answers that take many calls: it gives way to all the rest.
func (s *Store) DoBulk(ctx context.Context, op string, calls []*Call) {
	s.doAllIn(ctx, op, calls, func(n *Node) *lane.Lane[*Call] { return n.bulk })
}

// DoVital runs one call that no burst of other operations may delay.
func (s *Store) DoVital(ctx context.Context, op string, c *Call) (Reply, error) {
	s.doAllIn(ctx, op, []*Call{c}, func(n *Node) *lane.Lane[*Call] { return n.vital })
	return c.Reply, c.Err
}

func (s *Store) doAllIn(ctx context.Context, op string, calls []*Call, in func(*Node) *lane.Lane[*Call]) {
	if len(calls) == 0 {
		return
	}
	w := lane.NewWaiter(len(calls))
	latest := s.Deadline(ctx)
	for _, c := range calls {
		c.Until = latest
	}
	for left := calls; len(left) > 0; {
		var again []*Call
		for n, group := range s.groupCalls(left, w) {
			fit, r := in(n).PutAll(group)
			if r == lane.Closed && s.Node(group[0].Shard) != n {
				again = append(again, group...) // its shards went to another node just now
				continue
			}
			for _, c := range group[fit:] {
				c.Err = s.Refusal(r, "operations", s.opts.MaxPending)
				w.Done()
			}
		}
		left = again
	}
	w.Wait()
	for _, c := range calls {
		c.Err = AsUnavailable(op, c.Err)
	}
}

func (s *Store) groupCalls(calls []*Call, w *lane.Waiter) map[*Node][]*Call {
	groups := make(map[*Node][]*Call, 1)
	for _, c := range calls {
		c.Wait = w
		n := s.Node(c.Shard)
		groups[n] = append(groups[n], c)
	}
	return groups
}

// How many calls a round trip takes along bounds how long it holds up Redis, and with it the beats, which have their turn
// in between.
const (
	perRoundTrip     = 32
	bulkPerRoundTrip = 4
)

// flushCalls is the flush of a node's lanes of calls.
func (s *Store) flushCalls(n *Node, calls []*Call, perRoundTrip int, g guarantee) {
	var trip []*Call // of which none has its fate
	defer func() {
		if p := recover(); p != nil {
			s.BreakDown("a lane of calls", p)
			for _, c := range slices.Concat(trip, calls) {
				c.Err = s.Bug()
				c.Wait.Done()
			}
		}
	}()
	room := make([]*Call, 0, perRoundTrip)
	for len(calls) > 0 {
		latest := time.Now().Add(s.LeastTrip(g))
		for trip = room; len(calls) > 0 && len(trip) < perRoundTrip; {
			c := calls[0]
			if calls = calls[1:]; c.Until.Before(latest) {
				c.Err = s.Late()
				c.Wait.Done()
			} else {
				trip = append(trip, c)
			}
		}
		if len(trip) == 0 {
			return
		}
		s.execWith(context.Background(), n, trip, g)
		for len(trip) > 0 {
			c := trip[0]
			trip = trip[1:]
			c.Wait.Done()
		}
	}
}

func (s *Store) Refusal(r lane.Refusal, what string, limit int) *model.Error {
	if r == lane.Closed {
		return &model.Error{Code: model.Unavailable, Message: "this replica is shutting down; send the request again", RetryAfter: time.Second}
	}
	return &model.Error{
		Code: model.Overloaded, RetryAfter: time.Second,
		Message: fmt.Sprintf("%d %s already wait for Redis on this replica, which is its limit; wait as Retry-After says, then retry, or add replicas", limit, what),
	}
}

// AsUnavailable makes any error that is not already a tracker error one of Redis's being away.
func AsUnavailable(op string, err error) error {
	if err == nil {
		return nil
	}
	var e *model.Error
	if errors.As(err, &e) {
		if e.Op == "" {
			e.Op = op
		}
		return e
	}
	return &model.Error{
		Code: model.Unavailable, Op: op, RetryAfter: time.Second, Cause: err,
		Message: "the store did not confirm the request; nothing is known to be wrong with the task: send it again",
	}
}

// Reply reads a script's answer: integers, strings and lists, as RESP2 gives them.
type Reply []any

func (r Reply) At(i int) any {
	if i < len(r) {
		return r[i]
	}
	return nil
}

func (r Reply) Int(i int) int64 {
	switch v := r.At(i).(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

func (r Reply) Str(i int) string {
	switch v := r.At(i).(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func (r Reply) List(i int) Reply {
	v, _ := r.At(i).([]any)
	return v
}

// Bytes is how long the texts of the answer are together.
func (r Reply) Bytes() (n int) {
	for _, part := range r {
		switch v := part.(type) {
		case string:
			n += len(v)
		case []any:
			n += Reply(v).Bytes()
		}
	}
	return n
}

func (r Reply) Strings() []string {
	out := make([]string, len(r))
	for i := range r {
		out[i] = r.Str(i)
	}
	return out
}

func (r Reply) Time(i int) time.Time { return time.UnixMilli(r.Int(i)).UTC() }
