package oidc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lubdub-io/lubdub/api/token"
)

// Config describes an OpenID provider and what its tokens allow.
type Config struct {
	// Issuer is the provider's URL, exactly as its tokens have it.
	Issuer string `yaml:"issuer"`
	// ClientID is the audience that tokens must have, and the public client as which the dashboard and the command line sign in.
	ClientID string `yaml:"clientId"`
	// Scopes are requested when a person signs in; empty: openid, email and offline_access.
	Scopes []string `yaml:"scopes"`
	// SubjectClaim names the claim that events and logs show; empty: email.
	SubjectClaim string `yaml:"subjectClaim"`
	// CAFile holds the authorities that have signed the provider's certificate, in PEM; empty: the system's.
	CAFile string `yaml:"caFile"`
	// IdleTimeout ends a dashboard's session without input; 0: it lasts while the provider renews it.
	IdleTimeout time.Duration `yaml:"idleTimeout"`
	// Grants map tokens to roles: the first that matches a token applies.
	Grants []Grant `yaml:"grants"`
}

// Grant is what tokens with a certain claim allow.
type Grant struct {
	// Claim names the claim, with dots between the names of nested ones; empty: every token matches.
	Claim string `yaml:"claim"`
	// Value is what the claim is or, of a list, contains.
	Value string `yaml:"value"`

	Role token.Role `yaml:"role"`
	// Tenant and Workspace are ids, * for all, or claim: and the name of a claim that has the id.
	Tenant    string `yaml:"tenant"`
	Workspace string `yaml:"workspace"`
	// Queue restricts the role enroll to one queue; empty: any.
	Queue string `yaml:"queue"`
}

// claimPrefix marks a tenant or workspace that a claim names. No id contains a colon.
const claimPrefix = "claim:"

// Parse reads a configuration in YAML.
func Parse(text []byte) (*Config, error) {
	var c Config
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&c)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty; it needs issuer, clientId and grants")
	case err != nil:
		return nil, err
	}
	c.SubjectClaim = cmp.Or(c.SubjectClaim, "email")
	if len(c.Scopes) == 0 {
		c.Scopes = []string{"openid", "email", "offline_access"}
	}
	return &c, c.check()
}

func (c *Config) check() error {
	switch {
	case !secure(c.Issuer):
		return fmt.Errorf("issuer %q must be the https:// URL of the provider, exactly as its tokens have it", c.Issuer)
	case c.ClientID == "":
		return errors.New("clientId is missing: the id of the public client that is registered with the provider for Lubdub")
	case !slices.Contains(c.Scopes, "openid"):
		return errors.New("scopes must contain openid, without which the provider issues no ID token")
	case c.IdleTimeout < 0 || c.IdleTimeout > 0 && c.IdleTimeout < time.Minute:
		return fmt.Errorf("idleTimeout is %v; use a minute or more, such as 30m, or omit it", c.IdleTimeout)
	case len(c.Grants) == 0:
		return errors.New("grants is missing: without any, no token of the provider is accepted")
	}
	for i, g := range c.Grants {
		if err := g.check(); err != nil {
			return fmt.Errorf("grants[%d]: %w", i, err)
		}
	}
	return nil
}

// secure reports whether requests to an address can be trusted: it has https or is on this host.
func secure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.User == nil && u.RawQuery == "" && u.Fragment == "" && secureOrigin(u)
}

func secureOrigin(u *url.URL) bool {
	if u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

func (g *Grant) check() error {
	if (g.Claim == "") != (g.Value == "") {
		return errors.New("claim and value go together; without both, every token of the provider matches")
	}
	is := token.Control{Role: g.Role, Tenant: g.Tenant, Workspace: g.Workspace, Queue: g.Queue, TTL: time.Second}
	for _, part := range []*string{&is.Tenant, &is.Workspace} {
		if strings.HasPrefix(*part, claimPrefix) && *part != claimPrefix {
			*part = token.Wildcard
		}
	}
	return is.Check()
}
