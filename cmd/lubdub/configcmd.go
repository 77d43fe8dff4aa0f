package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/tlsfiles"
)

type configCmd struct {
	Print     configPrintCmd     `cmd:"" help:"Print the effective configuration as YAML, each value with its source, secrets hidden."`
	Check     configCheckCmd     `cmd:"" help:"Check the configuration of 'lubdub serve' and report every mistake."`
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

// Run checks everything that can be checked without Redis.
func (c *configCheckCmd) Run(a *app, k *kong.Context) error {
	cfg, err := c.load(a, k, nil)
	for _, s := range cfg.Removed() {
		fmt.Fprintf(a.stderr, "lubdub: warning: %s (%s) was removed and has no effect: %s\n", s.Name, s.Source, s.Instead)
	}
	found := []error{unwrapped(err)}
	if cfg.Roles.API {
		_, err := keyring(cfg)
		found = append(found, unwrapped(err))
	}
	found = append(found, checkTLSFiles(&cfg.Config)...)
	if err := errors.Join(found...); err != nil {
		return &mistake{err}
	}
	_, err = fmt.Fprintln(a.stdout, "the configuration is good")
	return err
}

// unwrapped removes the mistake type, so that all mistakes can be marked together.
func unwrapped(err error) error {
	if m := new(mistake); errors.As(err, &m) {
		return m.error
	}
	return err
}

// checkTLSFiles reads the certificates and keys as the server would.
func checkTLSFiles(cfg *config.Config) (found []error) {
	silent := slog.New(slog.DiscardHandler)
	if cfg.TLSCert != "" && cfg.TLSKey != "" {
		if _, err := tlsfiles.Server(cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA, silent); err != nil {
			found = append(found, fmt.Errorf("files of the listeners: %w", err))
		}
	}
	if strings.HasPrefix(cfg.Redis, "rediss") && (cfg.RedisCert == "") == (cfg.RedisKey == "") {
		if _, err := tlsfiles.Client(cfg.RedisCA, cfg.RedisCert, cfg.RedisKey, cfg.RedisName, silent); err != nil {
			found = append(found, fmt.Errorf("files for Redis: %w", err))
		}
	}
	return found
}

type configReferenceCmd struct{}

func (*configReferenceCmd) Run(a *app) error { return config.WriteReference(a.stdout) }
