package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/lifecycle"
)

type devCmd struct {
	NoFleet bool          `help:"Only the server: no simulated workers."`
	For     time.Duration `placeholder:"DURATION" help:"Stop starting tasks after this time, wait until they have ended, and exit. Without it the fleet runs until Ctrl-C."`
	Check   bool          `help:"Exit with 1 if Lubdub was wrong about any task: it failed a live one, missed a dead one, ended an attempt twice, or was more than 250 ms late, not counting time in which this process did not run. If the machine was too busy for a result, repeat the run, at most twice. Without flags it takes free ports and runs for 20s."`
	Rate    float64       `default:"5" help:"Tasks that the fleet starts per second."`

	settings `embed:""`
}

func (*devCmd) Help() string {
	return "Nothing else is needed: Redis is embedded, unless --redis names one, and the signing key is random. Nothing persists."
}

// The fleet uses a separate workspace, so that it does not interfere with manual experiments.
const (
	fleetTenant    = "lubdub-dev"
	fleetWorkspace = "fleet"
)

// Run demonstrates Lubdub at work.
func (c *devCmd) Run(a *app, k *kong.Context, env *session.Env) error {
	if err := c.settle(); err != nil {
		return &mistake{err}
	}
	cfg, err := c.load(a, k, c.defaults())
	if err != nil {
		return err
	}
	if !cfg.Roles.API || !cfg.Roles.Sweeper {
		return &mistake{fmt.Errorf("dev shows everything, so its roles are api,sweeper and not %s (%s)", cfg.Roles, cfg.Source("roles"))}
	}
	keys, err := devKeyring(cfg)
	if err != nil {
		return err
	}
	ctx, stop := lifecycle.Signals(context.Background(), a.force)
	defer stop()
	screen := newScreen(a.stdout)
	p, err := open(ctx, cfg, keys, newLogger(screen.wrap(a.stderr), &cfg.Config))
	if err != nil {
		return interrupted(ctx, err)
	}
	return c.show(ctx, env, screen, p, keys)
}

// settle applies what --check implies and refuses contradictory flags.
func (c *devCmd) settle() error {
	switch {
	case c.Check && c.NoFleet:
		return errors.New("--check checks the fleet, so it cannot be used with --no-fleet")
	case c.For < 0:
		return fmt.Errorf("--for %v is negative", c.For)
	case c.Rate <= 0 || c.Rate > 1000:
		return fmt.Errorf("--rate %v is not between 0 and 1000", c.Rate)
	case c.Check && c.For == 0:
		c.For = 20 * time.Second
	}
	return nil
}

// defaults returns defaults that differ from the server's. The fleet misbehaves on purpose, and warnings about it would hide the
// interesting output.
func (c *devCmd) defaults() map[string]string {
	d := map[string]string{"redis": config.Embedded, "finished-retention": "2h5m", "worker-heartbeat-interval": "500ms",
		"health-check-period": "0s", "log-level": "error"}
	if c.Check {
		d["listen"], d["admin-listen"] = "127.0.0.1:0", "127.0.0.1:0"
	}
	return d
}

// devKeyring returns the configured keyring, else a random one.
func devKeyring(cfg *config.Loaded) (*token.Keyring, error) {
	if cfg.SigningKeys != "" || cfg.SigningKeysFile != "" {
		return keyring(cfg)
	}
	return token.NewKeyring(token.NewKey("dev"))
}
