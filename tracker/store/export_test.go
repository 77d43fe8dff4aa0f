package store

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/lane"
)

// CheckEviction checks whether Redis evicts, if a check is due.
func (s *Store) CheckEviction(now time.Time) { s.eviction.check(context.Background(), now) }

// MarkOf returns the shard to which flushes of durable transitions write on the node of this one.
func (s *Store) MarkOf(shard int) int { return int(s.Node(shard).mark.shard.Load()) }

// RecordPipelines returns a function that returns the command names of each pipeline run since.
func (s *Store) RecordPipelines() func() [][]string {
	r := &recorder{}
	s.servers.single.AddHook(r)
	return func() [][]string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.seen
	}
}

type recorder struct {
	mu   sync.Mutex
	seen [][]string
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var names []string
		for _, c := range cmds {
			names = append(names, c.Name())
		}
		r.mu.Lock()
		r.seen = append(r.seen, names)
		r.mu.Unlock()
		return next(ctx, cmds)
	}
}

// Freeze moves a shard to its own node, and makes calls of a script wait there until the channel closes.
func (s *Store) Freeze(shard int, script string, until <-chan struct{}) {
	o := *s.servers.single.Options()
	o.Addr = strings.Replace(o.Addr, "127.0.0.1", "[::ffff:127.0.0.1]", 1)
	client := redis.NewClient(&o)
	client.AddHook(&frozen{sha: s.Scripts.Get(script).SHA, until: until})
	s.topology.mu.Lock()
	defer s.topology.mu.Unlock()
	byShard := slices.Clone(*s.topology.byShard.Load())
	byShard[shard] = s.topology.nodeOf(client)
	s.topology.useMap(byShard)
}

type frozen struct {
	sha   string
	until <-chan struct{}
}

func (f *frozen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *frozen) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *frozen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return len(cmd.Args()) > 1 && cmd.Args()[1] == f.sha }) {
			<-f.until
		}
		return next(ctx, cmds)
	}
}

// SchemaStep is one step of a test's own list of steps.
type SchemaStep struct {
	Name  string
	Least int
	Run   func() error // nil: the records stay as they are
}

func chain(steps []SchemaStep) []schemaStep {
	var made []schemaStep
	for _, s := range steps {
		made = append(made, schemaStep{name: s.Name, least: s.Least})
		if s.Run != nil {
			made[len(made)-1].run = func(context.Context, *format) error { return s.Run() }
		}
	}
	return made
}

// SchemaSteps returns the steps of this program.
func SchemaSteps() (names []string, least []int) {
	for _, s := range schemaSteps {
		names, least = append(names, s.name), append(least, s.least)
	}
	return names, least
}

// SettleSchema does what Open does in a program with these steps.
func (s *Store) SettleSchema(ctx context.Context, steps []SchemaStep) error {
	return s.format.settleSchema(ctx, chain(steps))
}

// CheckSchema checks the version once, as a running program does every second.
func (s *Store) CheckSchema() { s.format.checkSchema(context.Background(), schemaSteps) }

// FlushBulk flushes a bulk call while `during` runs, and reports whether it was alone.
func (s *Store) FlushBulk(c *Call, during func()) (alone bool) {
	n := s.Node(c.Shard)
	n.client.AddHook(&interrupted{do: during})
	c.waiter = lane.NewOwnWaiter()
	c.waiter.Expect(1)
	c.Until = s.deadlines.Deadline(context.Background())
	return s.runner.flushBulk(n, []*Call{c})
}

// interrupted runs a function once, while a pipeline is about to be sent.
type interrupted struct {
	recorder
	done atomic.Bool // not sync.Once, since the function may use pipelines itself
	do   func()
}

func (i *interrupted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !i.done.Swap(true) {
			i.do()
		}
		return next(ctx, cmds)
	}
}
