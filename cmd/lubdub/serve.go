package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/lifecycle"
)

type serveCmd struct{ settings }

func (*serveCmd) Help() string {
	return "Needs a Redis and a signing key. Settings come from flags, else from LUBDUB_* variables, else from the file that --config names."
}

// Run serves until a signal stops it.
func (c *serveCmd) Run(a *app, k *kong.Context) error {
	cfg, err := c.load(a, k, nil)
	if err != nil {
		return err
	}
	keys := adminKeys()
	if cfg.Roles.API {
		if keys, err = keyring(cfg); err != nil {
			return err
		}
	}
	ctx, stop := lifecycle.Signals(context.Background(), a.force)
	defer stop()
	p, err := open(ctx, cfg, keys, newLogger(a.stderr, &cfg.Config))
	if err != nil {
		return interrupted(ctx, err)
	}
	return p.run(ctx, func() { p.announce(a.stdout) })
}

// adminKeys returns keys that no client has: a process without the role api serves only pages that need no token, and
// must not be given the real keys for that.
func adminKeys() *token.Keyring {
	keys, err := token.NewKeyring(token.NewKey("none"))
	if err != nil {
		panic(err) // a new key is valid
	}
	return keys
}

// force ends the process immediately.
func (a *app) force(s os.Signal) {
	fmt.Fprintf(a.stderr, "lubdub: %v again: stopping at once, without draining\n", s)
	os.Exit(exitFailed)
}

// interrupted returns an error in plain words if a signal came while the process was still starting.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("stopped by a signal before it served")
	}
	return err
}
