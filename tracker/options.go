package tracker

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/brake"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// These are the defaults of Options that no other package defines. internal/config uses them as the defaults of the server's settings.
const (
	DefaultRedisTimeout    = time.Second
	DefaultDurableReplicas = 1
	maxSchedules           = 10_000   // of one tenant
	maxPendingBeats        = 1 << 16  // per Redis node
	maxPendingCalls        = 1 << 13  // per Redis node
	TenantWebhookBytes     = 64 << 20 // of one tenant
)

// Options configure a Tracker. Zero fields have the default in their comment.
type Options struct {
	// RedisURL is the address of Redis: redis://, rediss:// or unix:// for one server, or for a Cluster if it is one of its nodes;
	// redis+cluster://host:port,host:port for a Cluster, redis+sentinel://host:port,host:port/<master>[/<db>] for Sentinel; rediss+… with
	// TLS. miniredis://host:port is a miniredis in this process; commands that only a real server has are not sent to it.
	RedisURL string
	// RedisTLS is the TLS configuration if RedisURL uses TLS. If its ServerName is empty, the certificate must be for the host that is
	// dialled. Nil: the system's root certificates.
	RedisTLS *tls.Config

	Shards            int           // of the keyspace, fixed for a deployment's life; 0: the stored count, else 4, or 64 on Cluster
	FinishedRetention time.Duration // of finished tasks, OFFLINE workers and events; 0: DefaultFinishedRetention; ≥ MinFinishedRetention
	EventsPerShard    int           // approximate number that a shard keeps; 0: 10,000, or 160,000 over all shards if there are fewer than 16
	MaxPendingBeats   int           // beats that may wait for a flush, per Redis node; 0: maxPendingBeats
	MaxPendingCalls   int           // transitions and reads that may wait, per Redis node; 0: maxPendingCalls
	RedisTimeout      time.Duration // for one round trip to Redis; 0: DefaultRedisTimeout

	Durability      store.Durability // of creations, completions, new attempts and cancels; empty: Memory
	DurableReplicas int              // Redis replicas that must confirm them, with Replicated; 0: DefaultDurableReplicas

	WorkerInterval          time.Duration // between workers' beats; 0: DefaultWorkerInterval
	WorkerTimeoutMultiplier int           // a worker's timeout in intervals; 0: DefaultWorkerMultiplier; ≥ 2

	// HealthCheckPeriod is how long the load balancers in front of the replicas may take to notice that a replica has recovered. After an
	// outage, timeouts stay paused for that long, but no longer than the longest timeout in use. 0: no balancers.
	HealthCheckPeriod time.Duration

	// These are one tenant's limits, over all its workspaces; a creation or registration beyond them is refused. 0: no limit.
	TenantTasks   int64 // tasks that are not finished
	TenantBytes   int64 // bytes of its tasks, finished ones included; see docs/adr/0016-quotas.md
	TenantWorkers int64 // workers that are not OFFLINE

	TenantFires  int // fires of one tenant's schedules for which this process creates tasks in a second; 0: no limit per tenant
	MaxSchedules int // of one tenant, over all its workspaces; 0: 10,000. Tests use fewer

	Brake bool // gives members of a scope a second timeout period when very many of them are silent at once

	// Probe requests a late worker's probe URL to see whether it is alive; nil: no probes.
	Probe func(ctx context.Context, url string) error

	WebhookPoster      webhooks.Poster // sends requests to webhooks; nil: none are sent, and none can be saved
	TenantWebhookBytes int64           // limit of the bytes in Redis of deliveries of one tenant's webhooks; 0: 64 MiB. Tests use less

	// ReplicaID is the name of this process among the replicas that keep shard time running; empty: a random one.
	ReplicaID string

	// Replica is what this process publishes about itself. Gatherer supplies the counters published with it; nil: none are published.
	Replica  stats.Facts
	Gatherer prometheus.Gatherer

	Scripts    *lua.Set              // nil: lua.Load()
	Logger     *slog.Logger          // nil: slog.Default()
	Registerer prometheus.Registerer // nil: metrics are not registered
}

func (o *Options) setDefaults() error {
	if o.Shards < 0 || o.Shards > store.MaxShards {
		return fmt.Errorf("shards is %d; it must be 1–%d, or 0 for the default", o.Shards, store.MaxShards)
	}
	if o.FinishedRetention == 0 {
		o.FinishedRetention = model.DefaultFinishedRetention
	}
	if o.FinishedRetention < model.MinFinishedRetention {
		return fmt.Errorf("finished retention is %v; it must be at least %v (the longest token life plus 5 min), "+
			"so that no token outlives the record of its task or worker", o.FinishedRetention, model.MinFinishedRetention)
	}
	if err := o.setWorkerDefaults(); err != nil {
		return err
	}
	if err := o.setDurabilityDefaults(); err != nil {
		return err
	}
	if o.HealthCheckPeriod < 0 {
		return fmt.Errorf("the health check period is %v; use a positive time, or 0 where no balancer checks replicas", o.HealthCheckPeriod)
	}
	if o.EventsPerShard < 0 {
		return fmt.Errorf("events per shard is %d; it must be at least 1, or 0 for the default", o.EventsPerShard)
	}
	if o.MaxSchedules == 0 {
		o.MaxSchedules = maxSchedules
	}
	if o.MaxSchedules < 0 {
		return fmt.Errorf("a tenant may have %d schedules; it must be at least 1, or 0 for the default", o.MaxSchedules)
	}
	if o.MaxPendingBeats == 0 {
		o.MaxPendingBeats = maxPendingBeats
	}
	if o.MaxPendingCalls == 0 {
		o.MaxPendingCalls = maxPendingCalls
	}
	if o.RedisTimeout == 0 {
		o.RedisTimeout = DefaultRedisTimeout
	}
	if o.TenantWebhookBytes == 0 {
		o.TenantWebhookBytes = TenantWebhookBytes
	}
	if o.WebhookPoster == nil {
		o.WebhookPoster = webhooks.NoPoster{}
	}
	if o.ReplicaID == "" {
		o.ReplicaID = store.NewReplicaID()
	}
	if o.Scripts == nil {
		o.Scripts = lua.Load()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// brakeShare returns the percentage at which the brake holds verdicts; 0: it is off.
func (o *Options) brakeShare() int {
	if !o.Brake {
		return 0
	}
	return brake.Share
}

// workerTimeout returns how long a worker may be silent.
func (o *Options) workerTimeout() time.Duration {
	return o.WorkerInterval * time.Duration(o.WorkerTimeoutMultiplier)
}

func (o *Options) setWorkerDefaults() error {
	if o.WorkerInterval == 0 {
		o.WorkerInterval = model.DefaultWorkerInterval
	}
	if o.WorkerTimeoutMultiplier == 0 {
		o.WorkerTimeoutMultiplier = model.DefaultWorkerMultiplier
	}
	switch timeout := o.workerTimeout(); {
	case o.WorkerTimeoutMultiplier < 2:
		return fmt.Errorf("the worker timeout multiplier is %d; it must be at least 2, or one lost beat would look like a death",
			o.WorkerTimeoutMultiplier)
	case o.WorkerInterval < 0 || timeout < model.MinTimeout || timeout > model.MaxTimeout:
		return fmt.Errorf("the workers' timeout, %d intervals of %v, is %v; it must be %v to %v",
			o.WorkerTimeoutMultiplier, o.WorkerInterval, timeout, model.MinTimeout, model.MaxTimeout)
	}
	return nil
}

func (o *Options) setDurabilityDefaults() error {
	if o.Durability == "" {
		o.Durability = store.Memory
	}
	if o.DurableReplicas == 0 {
		o.DurableReplicas = DefaultDurableReplicas
	}
	if d := o.Durability; d != store.Memory && d != store.Fsync && d != store.Replicated {
		return fmt.Errorf("durability is %q; use %s, %s or %s", d, store.Memory, store.Fsync, store.Replicated)
	}
	if o.DurableReplicas < 1 || o.DurableReplicas > store.MaxDurableReplicas {
		return fmt.Errorf("the number of Redis replicas that must confirm is %d; it must be 1 to %d", o.DurableReplicas, store.MaxDurableReplicas)
	}
	return nil
}
