package store

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/lua"
)

// Options configure a Store; all but those with a nil or zero of their own must be set.
type Options struct {
	URL        string        // as Options.RedisURL of package tracker
	TLS        *tls.Config   // nil: with the roots of the system
	Timeout    time.Duration // for one round trip
	Shards     int           // 0: what is stored, else 16, or 64 on Cluster
	MaxPending int           // calls that may wait in each lane of a node

	Durability      Durability
	DurableReplicas int // that must confirm, with Replicated

	ReplicaID      string // names this process
	Scripts        *lua.Set
	EventsPerShard int // that a shard's stream keeps, about; 0: 10,000
	Logger         *slog.Logger
	Registerer     prometheus.Registerer // nil: metrics are registered nowhere
}
