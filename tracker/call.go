package tracker

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
)

// call is one script to run on one shard, and what it answered.
type call struct {
	shard  int
	script *lua.Script
	argv   []any // EVALSHA and all its arguments
	reply  reply
	err    error
	wait   *waiter
	until  time.Time // when its caller must have its answer; zero: it waits as long as a round trip takes
}

func newCall(shard int, script *lua.Script, keys []string, args ...any) *call {
	argv := make([]any, 0, 3+len(keys)+len(args))
	argv = append(argv, "evalsha", script.SHA, len(keys))
	for _, k := range keys {
		argv = append(argv, k)
	}
	return &call{shard: shard, script: script, argv: append(argv, args...)}
}

// exec runs calls in one round trip to one node and gives each its reply or its error. A script that the node
// does not know (it restarted, failed over, was flushed) is loaded and run again; a shard that has moved to
// another node is asked there. Every script is idempotent, so a call whose reply was lost may be repeated.
func (s *store) exec(n *node, calls []*call) { s.execWith(n, calls, nil) }

// execWith gives no call a success for which the guarantee does not stand; nil: none is asked for.
func (s *store) execWith(n *node, calls []*call, g guarantee) {
	if s.isLate(g) {
		for _, c := range calls {
			c.reply, c.err = nil, s.late()
		}
		return
	}
	ctx, cancel := s.tripContext(calls)
	defer cancel()
	s.runOn(ctx, n, calls, g)
	if s.cluster != nil {
		s.redirect(ctx, calls, g)
	}
}

func (s *store) runOn(ctx context.Context, n *node, calls []*call, g guarantee) {
	if refuse := s.refusesAll(n); refuse != nil {
		for _, c := range calls {
			c.reply, c.err = nil, refuse()
		}
		return
	}
	s.roundTrip(ctx, n, calls, trip{guarantee: g})
	var missing []*call
	for _, c := range calls {
		if isNoScript(c.err) {
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
func (s *store) roundTrip(ctx context.Context, n *node, calls []*call, with trip) {
	var cmds []redis.Cmder
	if with.load {
		cmds = loadScripts(ctx, calls)
	}
	own := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		if with.asking {
			cmds = append(cmds, redis.NewCmd(ctx, "asking"))
		}
		own[i] = redis.NewCmd(ctx, c.argv...)
		cmds = append(cmds, own[i])
	}
	var asked []*redis.Cmd
	if with.guarantee != nil {
		asked = with.guarantee.ask(ctx, s.keys[n.mark.of(s, n, calls)])
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
		if doubt = with.guarantee.confirmed(asked); isRedirect(doubt) {
			n.mark.moveOn(s, n)
		}
	}
	for i, c := range calls {
		if c.take(own[i]); c.err == nil && doubt != nil {
			c.err = s.notConfirmed(doubt)
		}
	}
}

// atOnce is how many shards one call may be about of a script that takes many: as many as do not hold up Redis for long
// on one server, one on Cluster, where a script may not touch two.
func (s *store) atOnce() int {
	if s.cluster != nil {
		return 1
	}
	return 16
}

// together groups shards by the calls that may be about them.
func (s *store) together(shards []int) [][]int {
	return slices.Collect(slices.Chunk(shards, s.atOnce()))
}

// allTogether groups all shards.
func (s *store) allTogether() [][]int {
	all := make([]int, s.shards())
	for i := range all {
		all[i] = i
	}
	return s.together(all)
}

// execEach runs calls, each about one group of shards, and hands over what each says of every shard: the reply is the
// wall's ms and then one list for each shard.
func (s *store) execEach(n *node, calls []*call, groups [][]int, each func(shard int, now int64, r reply)) error {
	s.exec(n, calls)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	for i, c := range calls {
		for j, shard := range groups[i] {
			each(shard, c.reply.int(0), c.reply.list(1+j))
		}
	}
	return nil
}

// loadScripts brings each script of the calls once.
func loadScripts(ctx context.Context, calls []*call) []redis.Cmder {
	var cmds []redis.Cmder
	loaded := map[*lua.Script]bool{}
	for _, c := range calls {
		if !loaded[c.script] {
			loaded[c.script] = true
			cmds = append(cmds, redis.NewCmd(ctx, "script", "load", c.script.Source))
		}
	}
	return cmds
}

func (c *call) take(cmd *redis.Cmd) {
	v, err := cmd.Result()
	if err != nil {
		c.reply, c.err = nil, err
		return
	}
	c.err = nil
	if list, ok := v.([]any); ok {
		c.reply = list
	} else {
		c.reply = reply{v}
	}
}

func isNoScript(err error) bool {
	var re redis.Error
	return errors.As(err, &re) && strings.HasPrefix(re.Error(), "NOSCRIPT")
}

// isNetwork tells an error of the connection from an answer of Redis.
func isNetwork(err error) bool {
	var re redis.Error
	return err != nil && !errors.As(err, &re)
}

// do runs one call through its node's lane and waits for its fate.
func (s *store) do(op string, c *call) (reply, error) {
	s.doAll(op, []*call{c})
	return c.reply, c.err
}

// doAll runs calls through the lanes of their nodes and waits until each has its fate. Their errors are
// tracker errors then. Calls about one shard run in their order.
func (s *store) doAll(op string, calls []*call) {
	s.doAllIn(op, calls, func(n *node) *lane[*call] { return n.calls })
}

// doBulk does what doAll does for lists and other answers that take many calls: it gives way to all the rest.
func (s *store) doBulk(op string, calls []*call) {
	s.doAllIn(op, calls, func(n *node) *lane[*call] { return n.bulk })
}

// doVital runs one call that no burst of other operations may delay.
func (s *store) doVital(op string, c *call) (reply, error) {
	s.doAllIn(op, []*call{c}, func(n *node) *lane[*call] { return n.vital })
	return c.reply, c.err
}

func (s *store) doAllIn(op string, calls []*call, in func(*node) *lane[*call]) {
	if len(calls) == 0 {
		return
	}
	w := newWaiter(len(calls))
	until := s.deadline()
	for _, c := range calls {
		c.until = until
	}
	for left := calls; len(left) > 0; {
		var again []*call
		for n, group := range s.groupCalls(left, w) {
			fit, r := in(n).putAll(group)
			if r == laneClosed && s.node(group[0].shard) != n {
				again = append(again, group...) // its shards went to another node just now
				continue
			}
			for _, c := range group[fit:] {
				c.err = s.refusal(r, "operations", s.opts.MaxPendingCalls)
				w.done()
			}
		}
		left = again
	}
	w.wait()
	for _, c := range calls {
		c.err = asUnavailable(op, c.err)
	}
}

func (s *store) groupCalls(calls []*call, w *waiter) map[*node][]*call {
	groups := make(map[*node][]*call, 1)
	for _, c := range calls {
		c.wait = w
		n := s.node(c.shard)
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
func (s *store) flushCalls(n *node, calls []*call, perRoundTrip int, g guarantee) {
	var trip []*call // of which none has its fate
	defer func() {
		if p := recover(); p != nil {
			s.breakDown("a lane of calls", p)
			for _, c := range slices.Concat(trip, calls) {
				c.err = s.bug()
				c.wait.done()
			}
		}
	}()
	room := make([]*call, 0, perRoundTrip)
	for len(calls) > 0 {
		latest := time.Now().Add(s.leastTrip(g))
		for trip = room; len(calls) > 0 && len(trip) < perRoundTrip; {
			c := calls[0]
			if calls = calls[1:]; c.until.Before(latest) {
				c.err = s.late()
				c.wait.done()
			} else {
				trip = append(trip, c)
			}
		}
		if len(trip) == 0 {
			return
		}
		s.execWith(n, trip, g)
		for len(trip) > 0 {
			c := trip[0]
			trip = trip[1:]
			c.wait.done()
		}
	}
}

func (s *store) refusal(r laneRefusal, what string, limit int) *Error {
	if r == laneClosed {
		return &Error{Code: Unavailable, Message: "this replica is shutting down; send the request again", RetryAfter: time.Second}
	}
	return &Error{
		Code: Overloaded, RetryAfter: time.Second,
		Message: fmt.Sprintf("%d %s already wait for Redis on this replica, which is its limit; wait as Retry-After says, then retry, or add replicas", limit, what),
	}
}

// asUnavailable makes any error that is not already a tracker error one of Redis's being away.
func asUnavailable(op string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		if e.Op == "" {
			e.Op = op
		}
		return e
	}
	return &Error{
		Code: Unavailable, Op: op, RetryAfter: time.Second, Cause: err,
		Message: "the store did not confirm the request; nothing is known to be wrong with the task: send it again",
	}
}

// reply reads a script's answer: integers, strings and lists, as RESP2 gives them.
type reply []any

func (r reply) at(i int) any {
	if i < len(r) {
		return r[i]
	}
	return nil
}

func (r reply) int(i int) int64 {
	switch v := r.at(i).(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

func (r reply) str(i int) string {
	switch v := r.at(i).(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func (r reply) list(i int) reply {
	v, _ := r.at(i).([]any)
	return v
}

// bytes is how long the texts of the answer are together.
func (r reply) bytes() (n int) {
	for _, part := range r {
		switch v := part.(type) {
		case string:
			n += len(v)
		case []any:
			n += reply(v).bytes()
		}
	}
	return n
}

func (r reply) strings() []string {
	out := make([]string, len(r))
	for i := range r {
		out[i] = r.str(i)
	}
	return out
}

func (r reply) time(i int) time.Time { return time.UnixMilli(r.int(i)).UTC() }
