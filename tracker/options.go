package tracker

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/lua"
)

// Options configure a Tracker. Zero fields mean the default that their comment names.
type Options struct {
	// RedisURL says where Redis is: redis://, rediss:// or unix:// for one server (one that turns out to be
	// a Cluster node is used as such), redis+cluster://host:port,host:port for a Cluster,
	// redis+sentinel://host:port,host:port/<master>[/<db>] for Sentinel; rediss+… with TLS. miniredis://host:port is
	// one of that name inside the process, which is not asked what only a server can tell.
	RedisURL string
	// RedisTLS is how TLS is spoken where RedisURL asks for it, an empty ServerName standing for the host that is
	// dialled; nil: with the roots of the system.
	RedisTLS *tls.Config

	Shards            int           // of the keyspace, fixed for a deployment's life; 0: what is stored, else 16, or 64 on Cluster
	FinishedRetention time.Duration // how long finished tasks are kept; 0: DefaultFinishedRetention; ≥ MinFinishedRetention
	EventsPerShard    int           // that a shard's stream keeps, about; 0: 10,000
	MaxPendingBeats   int           // beats that may wait for a flush, per Redis node; 0: 65,536
	MaxPendingCalls   int           // transitions and reads that may wait, per Redis node; 0: 8,192
	RedisTimeout      time.Duration // for one round trip to Redis; 0: 1 s

	Durability      Durability // of creations, completions, new attempts and cancels; empty: Memory
	DurableReplicas int        // that must confirm them, with Replicated; 0: 1

	WorkerInterval          time.Duration // between workers' beats; 0: DefaultWorkerInterval
	WorkerTimeoutMultiplier int           // a worker's timeout is this many intervals; 0: DefaultWorkerMultiplier; ≥ 2
	MaxBeatsPerSecond       float64       // of all workers; more of them are told to beat less often; 0: no ceiling
	OfflineRetention        time.Duration // how long OFFLINE workers are kept; 0: DefaultOfflineRetention

	// HealthCheckPeriod is how long the balancers in front of the replicas take at most to send clients to one that is
	// well again; for so long after trouble shard time is held, at most the longest timeout in use. 0: there are none.
	HealthCheckPeriod time.Duration

	// What one tenant may have, over all its workspaces; a creation or registration beyond it is refused. 0: no limit.
	TenantTasks   int64 // that are not finished
	TenantBytes   int64 // that its tasks take, finished ones included; see docs/adr/0016-quotas.md
	TenantWorkers int64 // that are not OFFLINE

	// BrakeShare switches the mass expiry brake on: the percentage of a scope that must be silent together for its
	// members to be given one more timeout. 0: off; at most 100.
	BrakeShare int

	// Probe asks a late worker's probe URL whether it is alive; nil: none is asked.
	Probe func(ctx context.Context, url string) error

	// ReplicaID names this process among those that keep shard time running; empty: a random one.
	ReplicaID string

	Scripts    *lua.Set              // nil: lua.Load()
	Logger     *slog.Logger          // nil: slog.Default()
	Registerer prometheus.Registerer // where metrics are registered; nil: nowhere
}

// SweeperOptions configure a Sweeper.
type SweeperOptions struct {
	ID string // shown in evidence; empty: that of the process, swp_ and a ULID

	// ReconcileRate is how many entries a second the reconciler looks at, over all shards and by all sweepers
	// together; 0: none.
	ReconcileRate int
}
