package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// A start needs the server with the home shard, which has the shard count, the version of the stored format and the revoked tokens: none
// of them may be guessed. It does not need the other servers. When nothing answers, the URL is wrong or no Redis runs, and the start
// fails with that message. When something answers, a failover or a freeze is likely to pass, and the start waits.

// contact returns an error when nothing answers at the addresses in the URL: Redis, a node of the Cluster, or a Sentinel.
func (s *servers) contact(ctx context.Context) (err error) {
	switch {
	case s.sentinels != nil:
		_, err = firstAnswer(ctx, s.sentinels.SentinelAddrs, s.querySentinel)
	case s.cluster != nil:
		_, err = s.home(ctx)
	default:
		err = s.single.Ping(ctx).Err()
	}
	var answer redis.Error
	if err == nil || errors.As(err, &answer) && passing(err) {
		return nil
	}
	return s.unreachable(err)
}

func (s *servers) querySentinel(ctx context.Context, addr string) (string, error) {
	of := s.sentinels
	o := redis.Options{Addr: addr, Username: of.SentinelUsername, Password: of.SentinelPassword, TLSConfig: of.TLSConfig}
	s.tune(&o)
	c := redis.NewSentinelClient(&o)
	defer func() { _ = c.Close() }()
	return c.Ping(ctx).Result()
}

func (s *servers) unreachable(err error) error {
	return fmt.Errorf("cannot reach Redis at %s: %w; start one there, give another with --redis, "+
		"or try Lubdub without one: --redis embedded", redactURL(s.opts.URL), err)
}

// home returns the client of the server with the home shard.
func (s *servers) home(ctx context.Context) (*redis.Client, error) {
	if s.cluster != nil {
		return s.cluster.MasterForKey(ctx, schema.MetaKey)
	}
	return s.single, nil
}

// Await runs a step of the start. It repeats the step while the part of Redis that it needs does not respond, until ctx ends, and returns
// any other error at once.
func (s *Store) Await(ctx context.Context, step string, do func(context.Context) error) error {
	for waited := false; ; waited = true {
		err := do(ctx)
		switch {
		case err == nil && waited:
			s.opts.Logger.Info("Redis is responding; starting continues", "step", step)
			return nil
		case err == nil || !passing(err) || s.breakdown.isBroken():
			return err
		case !waited:
			s.opts.Logger.Warn("a part of Redis does not answer: the start waits for it, and this server accepts no connections until then",
				"step", step, "error", err)
		}
		if s.servers.cluster != nil {
			s.servers.cluster.ReloadState(ctx) // its shards may have been promoted elsewhere
		}
		if !Pause(ctx, slotsPause) {
			return err
		}
	}
}

// passingReplies are the errors of a server that is starting, busy, or failing over.
var passingReplies = []string{"LOADING", "BUSY", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK"}

// passing reports whether err means that Redis does not respond now and may later.
func passing(err error) bool {
	if answer, ok := errors.AsType[redis.Error](err); ok {
		kind, _, _ := strings.Cut(answer.Error(), " ")
		return slices.Contains(passingReplies, kind)
	}
	if refused, ok := errors.AsType[*model.Error](err); ok {
		return refused.Code == model.Unavailable || refused.Code == model.Overloaded
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout)
}
