package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/cli/ui"
	"github.com/lubdub-io/lubdub/internal/embedded"
	"github.com/lubdub-io/lubdub/internal/fleet"
)

// show runs server and fleet concurrently. It ends when its time is over, with a signal, or when the server ends.
func (c *devCmd) show(ctx context.Context, env *session.Env, screen *screen, p *process, keys *token.Keyring) error {
	ctx, over := context.WithCancel(ctx)
	defer over()
	signalled := ctx.Done()
	playing, ended := context.WithCancel(ctx)
	serving, served := make(chan struct{}), make(chan error, 1)
	go func() {
		defer ended()
		served <- p.run(ctx, func() { close(serving) })
	}()
	<-serving
	if !c.Check {
		address, err := c.dashboard(p, keys)
		if err != nil {
			return err
		}
		screen.print("dashboard " + address)
	}
	screen.print(p.line())
	if p.redis != nil {
		screen.print(embedded.Caveat)
	}
	err := c.perform(playing, env, screen, p, keys)
	select {
	case <-signalled:
		if c.Check && err == nil {
			err = errors.New("interrupted, so nothing is proved")
		}
	default:
	}
	over()
	return errors.Join(err, <-served)
}

// dashboard returns the URL of the dashboard, signed in.
func (c *devCmd) dashboard(p *process, keys *token.Keyring) (string, error) {
	text, _, err := keys.MintControl(token.Control{
		Role: token.RoleAdmin, Tenant: token.Wildcard, Workspace: token.Wildcard, Subject: "dev", TTL: 24 * time.Hour,
	}, time.Now())
	tenant, workspace := fleetTenant, fleetWorkspace
	if c.NoFleet {
		tenant, workspace = "default", "default"
	}
	return ui.DashboardURL(p.apiURL()+p.cfg.BasePath(), "", text, tenant, workspace), err
}

// perform runs the demonstration while the server runs.
func (c *devCmd) perform(ctx context.Context, env *session.Env, screen *screen, p *process, keys *token.Keyring) error {
	if !c.Check {
		text, err := guide(p.apiURL(), keys, !c.NoFleet)
		if err != nil {
			return err
		}
		screen.print(text)
		message, remove := keepContext(env, p, keys, !c.NoFleet)
		defer remove()
		screen.print(message)
	}
	if c.NoFleet {
		if c.For > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.For)
			defer cancel()
		}
		<-ctx.Done()
		return nil
	}
	dispatch, _, err := keys.MintControl(token.Control{
		Role: token.RoleDispatcher, Tenant: fleetTenant, Workspace: fleetWorkspace, TTL: 365 * 24 * time.Hour,
	}, time.Now())
	if err != nil {
		return err
	}
	enroll, _, err := keys.MintControl(token.Control{
		Role: token.RoleEnroll, Tenant: fleetTenant, Workspace: fleetWorkspace, TTL: 365 * 24 * time.Hour,
	}, time.Now())
	if err != nil {
		return err
	}
	o := fleet.Options{
		BaseURL: p.apiURL(), Token: dispatch, EnrollToken: enroll, Tenant: fleetTenant, Workspace: fleetWorkspace, Rate: c.Rate,
		OnMishap: func(text string) { screen.print("mishap  " + text) },
		OnKill:   func(k fleet.Kill) { screen.print("killed  " + k.String()) },
		OnVerdict: func(v fleet.Verdict) {
			switch {
			case len(v.Wrong) > 0:
				screen.print("WRONG   " + v.String())
			case v.Zombies > 0:
				screen.print("zombie  " + v.String())
			case v.Unclear != "":
				screen.print("unclear " + v.String())
			}
		},
	}
	return proved(func() error { return c.play(ctx, screen, fleet.New(o)) }, screen.print)
}

// proved runs a check, and repeats it at most twice if the machine was too busy for it to prove anything.
func proved(play func() error, report func(string)) error {
	for range 2 {
		err := play()
		if !errors.Is(err, fleet.ErrTooBusy) {
			return err
		}
		report("retrying: " + err.Error())
	}
	return play()
}

// play runs the fleet and prints its counts meanwhile, then its summary.
func (c *devCmd) play(ctx context.Context, screen *screen, f *fleet.Fleet) error {
	played := make(chan struct{})
	go func() { defer close(played); f.Run(ctx, c.For) }()
	ticker := time.NewTicker(screen.pace())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			screen.status(f.Summary().Status())
		case <-played:
			screen.status("")
			s := f.Summary()
			screen.print(fmt.Sprintf("\nsummary of run %s, each verdict read back through the API:\n%s", f.RunID(), s))
			if !c.Check || ctx.Err() != nil {
				return nil // an interrupted run proves nothing, and its caller knows why it was interrupted
			}
			if err := s.Check(); err != nil {
				return err
			}
			screen.print("every verdict was right")
			return nil
		}
	}
}
