package main

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/internal/config"
)

type configCmd struct {
	Print     configPrintCmd     `cmd:"" help:"Print the effective configuration as YAML, each value with its source, secrets hidden."`
	Check     configCheckCmd     `cmd:"" help:"Check the configuration of 'lubdub serve' and tell every mistake."`
	Reference configReferenceCmd `cmd:"" help:"Print the reference of all settings as Markdown."`
}

type configPrintCmd struct{ settings }

func (c *configPrintCmd) Run(a *app, k *kong.Context) error {
	cfg, err := c.load(a, k, nil)
	if err != nil {
		return err
	}
	return cfg.Print(a.stdout)
}

type configCheckCmd struct{ settings }

// Run looks at everything that can be judged without Redis.
func (c *configCheckCmd) Run(a *app, k *kong.Context) error {
	cfg, err := c.load(a, k, nil)
	if err != nil {
		return err
	}
	if cfg.Roles.API {
		if _, err := keyring(cfg); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(a.stdout, "the configuration is good")
	return err
}

type configReferenceCmd struct{}

func (*configReferenceCmd) Run(a *app) error { return config.WriteReference(a.stdout) }
