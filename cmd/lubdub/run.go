package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/internal/lifecycle"
	"github.com/lubdub-io/lubdub/tracker/sweep"
)

// services are the running parts of a process. Calling a field stops its part.
type services struct {
	admin, api, keepTime, revocations, provider, sweeper, stats, tracker lifecycle.Stop

	stopping atomic.Bool
}

// run serves until ctx ends or a part fails, then stops everything in order. It returns nil if all parts served and stopped without an
// error. serving is called once requests are answered.
func (p *process) run(ctx context.Context, serving func()) error {
	if p.cfg.Roles.API {
		// Learns Redis's clock before the first token is checked, and which servers do not answer, so that no request waits for them.
		_ = p.tracker.Beats.Tick() // if it fails, so does everything else
	}
	if err := p.listen(); err != nil {
		p.abandon()
		return err
	}
	g := lifecycle.NewGroup(ctx)
	none := func(context.Context) error { return nil }
	s := &services{api: none, keepTime: none, revocations: none, provider: none, sweeper: none, stats: none, tracker: none}
	s.admin = g.Start("admin listener", s.listener(p.adminListener(), p.api.ServeAdmin))
	if p.cfg.Roles.API {
		s.keepTime = g.Start("shard time", p.tracker.Beats.KeepTime)
		s.revocations = g.Start("revocations", p.tracker.Revocations.Follow)
		s.api = g.Start("API listener", s.listener(p.listener.listener, p.api.Serve))
	}
	if p.cfg.Roles.Sweeper {
		s.sweeper = g.Start("sweeper", sweep.NewSweeper(p.tracker.Sweeper, sweep.SweeperOptions{}).Run)
	}
	if p.provider != nil {
		s.provider = g.Start("OpenID provider", func(ctx context.Context) error {
			p.provider.Run(ctx)
			return nil
		})
	}
	s.stats = g.Start("statistics", p.tracker.Stats.Keep)
	s.tracker = g.Start("tracker", p.untilItFails)
	serving()
	<-g.Done()
	return errors.Join(g.Err(), p.stop(ctx, s, g.Err() == nil))
}

// listen makes all endpoints accept connections.
func (p *process) listen() error {
	for _, e := range []*endpoint{p.admin, p.listener} {
		if e != nil {
			if err := e.listen(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *process) adminListener() net.Listener {
	if p.cfg.AdminTLS == "on" {
		return tls.NewListener(p.admin.listener, p.tls)
	}
	return p.admin.listener
}

// untilItFails returns when a bug has ended the tracker's work: the process must not continue without it.
func (p *process) untilItFails(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.tracker.Store.Broken():
		return p.tracker.Store.BrokenBy()
	}
}

// listener makes a service of a listener. Its server is stopped by a method, not by a context, and Serve then returns immediately; the
// service ends when it is stopped itself.
func (s *services) listener(l net.Listener, serve func(net.Listener) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := serve(l)
		if s.stopping.Load() {
			<-ctx.Done()
			return nil
		}
		return err
	}
}

const (
	// shutdownTimeout is the longest wait for requests that are under way when the process stops. Requests are answered within a few
	// seconds, so it is reached only if something hangs.
	shutdownTimeout = 20 * time.Second
	// aMoment is for parts that wait for nothing: they end as soon as they are stopped, however much of shutdownTimeout others took.
	aMoment = time.Second
)

// stop ends the process in an order in which nothing is lost: first no new requests are routed here, then requests under way are
// answered, then the results are in Redis.
func (p *process) stop(ctx context.Context, s *services, wait bool) error {
	p.log.Info("stopping", slog.Duration("drainDelay", p.cfg.DrainDelay), slog.Duration("shutdownTimeout", p.shutdownTimeout))
	p.api.SetDraining()
	p.tracker.Beats.SetDraining()
	if wait && p.cfg.DrainDelay > 0 {
		time.Sleep(p.cfg.DrainDelay) // a second signal ends the process, and this with it
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.shutdownTimeout)
	defer cancel()
	swept := make(chan error, 1)
	go func() { swept <- s.sweeper(limit) }() // another sweeper takes over its shards at once
	s.stopping.Store(true)
	var errs []error
	if err := p.api.Shutdown(limit); err != nil {
		errs = append(errs, fmt.Errorf("requests were still running %v after the stop began: %w", p.shutdownTimeout, err))
	}
	// Without this, a signal before a server has begun to serve would leave its listener open.
	p.admin.close()
	p.listener.close()
	sweeperEnd := <-swept // the others' time begins after it: the last heartbeats must reach Redis
	last, done := context.WithTimeout(context.WithoutCancel(limit), aMoment)
	defer done()
	for _, err := range []error{
		sweeperEnd, s.api(last), s.admin(last), s.tracker(last), s.keepTime(last), s.revocations(last), s.provider(last), s.stats(last),
	} {
		if err != nil {
			errs = append(errs, fmt.Errorf("%w within %v; Redis may not be responding", err, p.shutdownTimeout))
		}
	}
	if err := p.tracker.Close(last); err != nil {
		errs = append(errs, fmt.Errorf("the last heartbeats may not have reached Redis: %w", err))
	}
	if p.redis != nil {
		p.redis.Close()
	}
	p.log.Info("stopped")
	return errors.Join(errs...)
}

// abandon closes what a process that never served had opened.
func (p *process) abandon() {
	p.admin.close()
	p.listener.close()
	if p.tracker != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.tracker.Close(ctx)
	}
	if p.redis != nil {
		p.redis.Close()
	}
}
