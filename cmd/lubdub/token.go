package main

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/api/token"
	operator "github.com/lubdub-io/lubdub/internal/cli"
	"github.com/lubdub-io/lubdub/internal/config"
)

type tokenCmd struct {
	Make tokenMake `cmd:"" default:"withargs" help:"Print a control token: viewer, submitter, operator, dispatcher, enroll or admin."`

	operator.TokenCommands `embed:""`
}

type tokenMake struct {
	Role      string        `required:"" placeholder:"ROLE" help:"What it may do: viewer, submitter, operator, dispatcher, enroll or admin."`
	Tenant    string        `default:"default" help:"Tenant that it is for; '*' for all."`
	Workspace string        `default:"default" help:"Workspace that it is for; '*' for all."`
	Queue     string        `placeholder:"QUEUE" help:"Queue that an enroll token is limited to."`
	Subject   string        `placeholder:"NAME" help:"Who uses it; events and logs name this subject. Default: the role."`
	TTL       time.Duration `name:"ttl" default:"1h" help:"How long it is valid, at most 8784h (366 days)."`

	File            string `name:"config" short:"c" placeholder:"FILE" help:"YAML file with settings (LUBDUB_CONFIG)."`
	SigningKeysFile string `name:"signing-keys-file" type:"setting" placeholder:"FILE" help:"File with the server's signing keys."`
}

func (*tokenMake) Help() string { return "`lubdub token --role ROLE` is short for it." }

// Run prints only the token, so that it can be assigned to a variable.
func (c *tokenMake) Run(a *app, k *kong.Context) error {
	wanted := token.Control{Role: token.Role(c.Role), Tenant: c.Tenant, Workspace: c.Workspace, Queue: c.Queue, Subject: c.Subject, TTL: c.TTL}
	if err := wanted.Check(); err != nil { // a key would not help
		return &mistake{err}
	}
	cfg, err := loadConfig(config.Input{
		File: c.File, Environ: a.environ, Flags: &config.Config{SigningKeysFile: c.SigningKeysFile}, FlagsSet: flagsSet(k), BadFlags: a.badFlags,
	})
	if err != nil {
		return err
	}
	keys, err := keyring(cfg)
	if err != nil {
		return err
	}
	text, _, err := keys.MintControl(wanted, time.Now())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, text)
	return err
}
