// Package login signs an operator in with the OpenID provider of a deployment.
package login

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
)

type Command struct {
	Name          string `arg:"" optional:"" predictor:"context" help:"Context to sign in; by default the selected one, or the server's host."`
	session.Flags `embed:""`
}

func (*Command) Help() string {
	return "Signs in with the server's OpenID provider: prints an address and a code to confirm in a browser, which may be on another " +
		"machine, and keeps the token in the context. The token is renewed while the provider allows it. `lubdub context rm` signs out."
}

func (c *Command) Run(env *session.Env) error {
	if c.Context == "" && c.Server == "" {
		c.Context = c.Name
	}
	name, at, err := c.Find(env)
	if err != nil {
		return err
	}
	name = cmp.Or(c.Name, name, hostOf(at.Server))
	if err := contexts.CheckName(name); err != nil {
		return exit.Misusef("%v; name it: lubdub login NAME --server %s", err, at.Server)
	}
	s, err := c.OpenAt(env, name, contexts.Context{Server: at.Server, CAFile: at.CAFile, AllowHTTP: at.AllowHTTP, Token: "none"})
	if err != nil {
		return err
	}
	defer s.Client.Close()
	with, err := findProvider(env.Context, s)
	if err != nil {
		return err
	}
	ctx, err := session.WithProviderClient(env.Context, &at)
	if err != nil {
		return err
	}
	tokens, err := with.authorize(ctx, s)
	if err != nil {
		return err
	}
	at.Login = &contexts.Login{TokenURL: with.Token, ClientID: with.ClientID}
	if err := session.SignIn(env.Context, env, &at, tokens); err != nil {
		return err
	}
	err = contexts.Change(env.Getenv, func(file *contexts.File) error {
		if old := file.Contexts[name]; old.Server == at.Server { // which --server named again
			at.Tenant, at.Workspace, at.CAFile, at.AllowHTTP = old.Tenant, old.Workspace, old.CAFile, old.AllowHTTP
		}
		file.Current = name
		return file.Set(name, at)
	})
	if err != nil {
		return err
	}
	_, claims, err := session.ReadClaims(at.Token)
	if err != nil {
		return err
	}
	s.Note("Signed in to %s as %s, with the role %s. Commands use the context %s.", at.Server, claims.Subject, claims.Role, name)
	return nil
}

// hostOf returns the host of a server's first address, as the name of a context.
func hostOf(server string) string {
	first, _, _ := strings.Cut(server, ",")
	u, err := url.Parse(first)
	if err != nil {
		return "" // Open has refused it
	}
	return u.Hostname()
}

// provider is what a server says about its OpenID provider.
type provider struct {
	Issuer              string   `json:"issuer"`
	Token               string   `json:"token_endpoint"`
	DeviceAuthorization string   `json:"device_authorization_endpoint"`
	ClientID            string   `json:"client_id"`
	Scopes              []string `json:"scopes"`
}

func findProvider(ctx context.Context, s *session.Session) (*provider, error) {
	first, _, _ := strings.Cut(s.Server, ",")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(first, "/")+"/ui/oidc.json", nil)
	if err != nil {
		return nil, err
	}
	res, err := s.HTTP().Do(req)
	if err != nil {
		return nil, exit.Unanswered(fmt.Errorf("%s does not answer: %w", first, err))
	}
	defer func() { _ = res.Body.Close() }()
	var p provider
	const most = 64 << 10
	err = json.NewDecoder(io.LimitReader(res.Body, most)).Decode(&p)
	switch {
	case res.StatusCode == http.StatusServiceUnavailable:
		return nil, exit.Unanswered(fmt.Errorf("%s has not reached its OpenID provider yet; try again", first))
	case res.StatusCode != http.StatusOK || err != nil || p.Issuer == "":
		return nil, exit.Misusef("%s accepts no sign-in with an OpenID provider; its operator can set oidc-file", first)
	case p.DeviceAuthorization == "":
		return nil, exit.Misusef("the OpenID provider %s has no device authorization; sign in to the dashboard: %s/ui/", p.Issuer, first)
	}
	return &p, nil
}

// authorize returns the tokens of the provider, after a person has confirmed the sign-in.
func (p *provider) authorize(ctx context.Context, s *session.Session) (*oauth2.Token, error) {
	cfg := oauth2.Config{ClientID: p.ClientID, Scopes: p.Scopes, Endpoint: oauth2.Endpoint{
		DeviceAuthURL: p.DeviceAuthorization, TokenURL: p.Token, AuthStyle: oauth2.AuthStyleInParams,
	}}
	asked, err := cfg.DeviceAuth(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s refuses the sign-in: %w", p.Issuer, err)
	}
	s.Note("Signing in to %s with %s.\nOpen %s and confirm the code %s", s.Server, output.Clean(p.Issuer),
		output.Clean(cmp.Or(asked.VerificationURIComplete, asked.VerificationURI)), output.Clean(asked.UserCode))
	tokens, err := cfg.DeviceAccessToken(ctx, asked)
	if err != nil {
		return nil, fmt.Errorf("%s has not signed you in: %w", p.Issuer, err)
	}
	return tokens, nil
}
