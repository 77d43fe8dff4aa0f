package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/lubdub-io/lubdub/internal/capacity"
)

type planCmd struct {
	Tasks    string        `placeholder:"N" help:"Tasks that run at the same time, such as 10000, 10M or 1B."`
	Interval time.Duration `default:"30s" help:"Time between two beats."`
	Timeout  time.Duration `placeholder:"DURATION" help:"Silence after which a task is dead. Default: three intervals."`
	Progress string        `default:"100%" placeholder:"SHARE" help:"Share of beats that include progress."`
	Way      string        `placeholder:"WAY" help:"single: one task a request; batch: many; worker: workers beat for all tasks that they hold. Default: single, or batch if --batch is set."`
	Batch    int           `placeholder:"N" help:"Tasks in one request (way batch) or of one worker (way worker). Default: 100."`

	Life      time.Duration `placeholder:"DURATION" help:"How long a task runs. If unset, the cost of creating and ending tasks is not counted."`
	Retention time.Duration `default:"24h" help:"How long finished tasks and events are kept (finished-retention). Used only with --life."`

	IdempotencyKeys string `default:"100%" placeholder:"SHARE" help:"Share of creations with an idempotency key, which is kept for 24 h. Used only with --life."`
	ClaimIDs        string `name:"claim-ids" default:"100%" placeholder:"SHARE" help:"Share of claims with a claim id, which is kept for 1 h. Each claims one task. Used only with --life and --way worker."`

	EventsPerShard int64 `default:"0" help:"Events kept per shard, like the setting events-per-shard; 0: its default. Used only with --life."`
	Schedules      int64 `placeholder:"N" help:"Number of schedules. The tasks that they create are part of --tasks."`
	Webhooks       int64 `placeholder:"N" help:"Number of webhooks. All their receivers may be down at once."`

	Headroom    string        `default:"0.5" placeholder:"SHARE" help:"Share of each core that stays free."`
	Cores       int           `default:"4" help:"Cores of an API replica."`
	RedisMemory string        `default:"32GiB" placeholder:"SIZE" help:"Memory of a Redis server."`
	RoundTrip   time.Duration `default:"1ms" help:"Round trip between API and Redis."`

	JSON      bool   `name:"json" help:"Print JSON instead of text."`
	Costs     string `placeholder:"FILE" help:"Use these costs, such as those of your own machine that 'lubdub-bench costs REPORT' prints."`
	ShowCosts bool   `help:"Print the measured costs and exit."`
}

func (*planCmd) Help() string {
	return "Estimates what a fleet needs: API and Redis cores, memory, shards and connections, each with its formula, from the costs that " +
		"the benchmark has measured. docs/capacity.md explains them."
}

// Run prints the plan.
func (c *planCmd) Run(a *app) error {
	costs, err := c.costs()
	if err != nil {
		return &mistake{err}
	}
	if c.ShowCosts {
		return costs.WriteTable(a.stdout)
	}
	fleet, err := c.fleet()
	if err != nil {
		return &mistake{err}
	}
	plan, err := capacity.Compute(fleet, costs)
	if err != nil {
		return &mistake{err}
	}
	if c.JSON {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(plan)
	}
	return plan.WriteText(a.stdout, &fleet, costs)
}

func (c *planCmd) costs() (*capacity.Costs, error) {
	if c.Costs == "" {
		return capacity.Default()
	}
	text, err := os.ReadFile(c.Costs)
	if err != nil {
		return nil, fmt.Errorf("--costs: %w", err)
	}
	costs, err := capacity.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--costs %s: %w", c.Costs, err)
	}
	return costs, nil
}

// fleet combines the flags, and sets the defaults of those that depend on each other.
func (c *planCmd) fleet() (f capacity.Fleet, err error) {
	f = capacity.Fleet{
		Interval: c.Interval, Timeout: c.Timeout, Way: capacity.Way(c.Way), Together: c.Batch, Life: c.Life,
		Retention: c.Retention, EventsPerShard: c.EventsPerShard,
		Schedules: c.Schedules, Webhooks: c.Webhooks, Cores: c.Cores, RoundTrip: c.RoundTrip,
	}
	if c.Tasks == "" {
		return f, fmt.Errorf("say how many tasks there are, for example: lubdub plan --tasks 1M --interval 30s")
	}
	if f.Tasks, err = capacity.ParseCount(c.Tasks); err != nil {
		return f, fmt.Errorf("--tasks %w", err)
	}
	if f.Progress, err = capacity.ParseShare(c.Progress); err != nil {
		return f, fmt.Errorf("--progress %w", err)
	}
	if f.Keys, err = capacity.ParseShare(c.IdempotencyKeys); err != nil {
		return f, fmt.Errorf("--idempotency-keys %w", err)
	}
	if f.ClaimIDs, err = capacity.ParseShare(c.ClaimIDs); err != nil {
		return f, fmt.Errorf("--claim-ids %w", err)
	}
	if f.Headroom, err = capacity.ParseShare(c.Headroom); err != nil {
		return f, fmt.Errorf("--headroom %w", err)
	}
	if f.RedisMemory, err = capacity.ParseBytes(c.RedisMemory); err != nil {
		return f, fmt.Errorf("--redis-memory %w", err)
	}
	if f.Way == "" {
		f.Way = capacity.Single
		if f.Together > 0 {
			f.Way = capacity.Batch
		}
	}
	if f.Together == 0 && f.Way != capacity.Single {
		f.Together = 100
	}
	return f, nil
}
