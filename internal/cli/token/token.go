// Package token has the commands about tokens that ask a server or read a token: inspect and revoke.
package token

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Inspect prints the claims of a token.
type Inspect struct {
	session.Flags `embed:""`
	Stdin         bool `name:"stdin" help:"Read the token from standard input, instead of the one that the context has."`
}

func (*Inspect) Help() string {
	return "Shows kind, role, scope, subject and expiry. The token is not verified, and never printed."
}

func (c *Inspect) Run(env *session.Env) error {
	p := &output.Printer{W: env.Stdout, Format: c.Output, Colour: env.Colourful()}
	text, err := c.token(env)
	if err != nil {
		return err
	}
	key, claims, err := session.ReadClaims(text)
	if err != nil {
		return exit.Misused(err)
	}
	if !p.Format.ForPeople() {
		raw, err := json.Marshal(struct {
			Key string `json:"kid"`
			*session.Claims
		}{key, claims})
		if err != nil {
			return err
		}
		return p.Raw(raw)
	}
	for _, line := range claimLines(key, claims, time.Now()) {
		fmt.Fprintln(env.Stdout, output.Clean(line))
	}
	return nil
}

// token returns the token to use: from standard input, or the context's.
func (c *Inspect) token(env *session.Env) (string, error) {
	if c.Stdin {
		return session.ReadToken(env, "-")
	}
	s, err := c.Open(env)
	if err != nil {
		return "", err
	}
	return s.Credential.Token(env.Context)
}

func claimLines(key string, c *session.Claims, now time.Time) []string {
	lines := []string{fmt.Sprintf("A %s token of %s/%s, signed with the key %s by %s.", c.Kind, c.Tenant, c.Workspace, key, c.Issuer)}
	for _, part := range []struct{ name, value string }{
		{"Role", c.Role}, {"Subject", c.Subject}, {"Queue", c.Queue}, {"Run", c.Run}, {"Task", c.Task}, {"Worker", c.Worker}, {"Machine",
			c.Machine},
	} {
		if part.value != "" {
			lines = append(lines, part.name+": "+part.value)
		}
	}
	ends := time.Unix(c.ExpiresAt, 0).UTC()
	if ends.Before(now) {
		return append(lines, fmt.Sprintf("It expired at %s, %s ago.", ends.Format(time.RFC3339), output.Duration(now.Sub(ends))))
	}
	return append(lines, fmt.Sprintf("It is valid until %s, for another %s, unless it is revoked.", ends.Format(time.RFC3339),
		output.Duration(ends.Sub(now))))
}

// Revoke revokes tokens.
type Revoke struct {
	Subject       string `xor:"whose" placeholder:"NAME" help:"Revoke control tokens issued to this subject."`
	Worker        string `xor:"whose" placeholder:"ID" predictor:"worker" help:"Revoke the tokens of this worker."`
	WholeTenant   string `xor:"whose" placeholder:"ID" help:"Revoke all tokens of this tenant."`
	IssuedBefore  string `placeholder:"WHEN" help:"Revoke only tokens issued before this time, or this long ago (default now)."`
	Yes           bool   `short:"y" help:"Do not ask."`
	session.Flags `embed:""`
}

func (c *Revoke) Run(env *session.Env) error {
	if c.Subject+c.Worker+c.WholeTenant == "" {
		return exit.Misusef("say whose tokens: --subject, --worker or --whole-tenant")
	}
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	before, err := s.ParseTime("issued-before", c.IssuedBefore)
	if err != nil {
		return err
	}
	if err := s.Confirm(session.ActFlags{Yes: c.Yes}, "revoke tokens of "+c.Subject+c.Worker+c.WholeTenant+" in "+s.Scope()); err != nil {
		return err
	}
	raw, done, err := session.Post[v1.RevokeTokensResponse](env.Context, s, "/v1/tokens:revoke", v1.RevokeTokensRequest{
		Subject: c.Subject, WorkerID: c.Worker, TenantID: c.WholeTenant, IssuedBefore: before,
	})
	if err != nil {
		return err
	}
	return s.ShowResult(raw, "Revoked all matching tokens issued before %s; takes effect on all replicas within 2 s.",
		session.FormatTime(done.IssuedBefore))
}
