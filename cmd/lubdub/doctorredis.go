package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/api/system"
	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/judge"
	"github.com/lubdub-io/lubdub/internal/tlsfiles"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/stats"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// checkRedis checks a Redis as a server with the settings of this host would use it.
func (a *app) checkRedis(ctx context.Context, url, file string) ([]v1.Finding, error) {
	in := config.Input{File: file, Environ: a.environ, Flags: &config.Config{Redis: url}}
	if url != "" {
		in.FlagsSet = []string{"redis"}
	}
	cfg, err := loadConfig(in)
	if err != nil {
		return nil, err
	}
	if cfg.Redis == config.Embedded {
		return nil, &mistake{errors.New("an embedded Redis lives in its server's process; ask that server: lubdub doctor")}
	}
	o := tracker.Options{
		RedisURL: cfg.Redis, RedisTimeout: cfg.RedisTimeout, Shards: cfg.Shards, EventsPerShard: cfg.EventsPerShard,
		Durability: store.Durability(cfg.Durability), DurableReplicas: cfg.DurableReplicas,
		Replica: stats.Facts{Settings: cfg.Digests()}, Logger: slog.New(slog.DiscardHandler),
	}
	if strings.HasPrefix(cfg.Redis, "rediss") {
		if o.RedisTLS, err = tlsfiles.Client(cfg.RedisCA, cfg.RedisCert, cfg.RedisKey, cfg.RedisName, o.Logger); err != nil {
			return nil, &mistake{err}
		}
	}
	is, err := tracker.Examine(ctx, o)
	if err != nil {
		return []v1.Finding{{Code: "redis", Severity: v1.SeverityFail, About: v1.Us, Message: err.Error(),
			Remedy: "see that it runs, that this machine reaches it, and that user, password and TLS are right"}}, nil
	}
	if url != "" { // the same one may have another address from here
		is.Differing = slices.DeleteFunc(is.Differing, func(name string) bool { return name == "redis" })
	}
	return judge.OfStore(storeOf(is, cfg.Shards)), nil
}

func storeOf(is *tracker.Examination, wantedShards int) judge.Store {
	s := judge.Store{
		Denied: is.Denied, DeniedError: text(is.DeniedErr), Scripts: is.Scripts, ScriptsError: text(is.ScriptsErr),
		DurabilityError: text(is.DurabilityErr), Shards: is.Shards, WantedShards: wantedShards, StoredError: text(is.StoredErr),
		Replicas: is.Running, Differing: is.Differing,
	}
	for i := range is.Nodes {
		s.Redis = append(s.Redis, system.RedisView(&is.Nodes[i]))
	}
	return s
}

// text returns an error's message; empty for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
