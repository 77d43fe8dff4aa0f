// Package session is one command's work with one deployment: which one, with which token, calls to its API, and what the command
// reads from and prints for its user.
package session

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// Session is one command's work with one deployment.
type Session struct {
	*output.Printer
	Env         *Env
	Client      *client.Client
	Credential  *Credential
	ContextName string // empty: none
	Server      string
	transport   *transport
}

// callTries is the maximum number of attempts of a call.
const callTries = 2

// Open determines the selected deployment and creates a client for it.
func (c *Flags) Open(env *Env) (*Session, error) {
	if c.Timeout <= 0 {
		return nil, exit.Misusef("--timeout %v leaves no time for an answer; without the flag it is 10s", c.Timeout)
	}
	name, at, err := c.Find(env)
	if err != nil {
		return nil, err
	}
	return c.OpenAt(env, name, at)
}

// OpenAt creates a client for a deployment; the context's name may be empty.
func (c *Flags) OpenAt(env *Env, name string, at contexts.Context) (s *Session, err error) {
	if err := CheckServer(at.Server); err != nil {
		return nil, err
	}
	s = &Session{
		Printer: &output.Printer{W: env.Stdout, Format: c.Output, Colour: env.Colourful()}, Env: env, ContextName: name, Server: at.Server,
		Credential: &Credential{
			env: env, context: name, Text: at.Token, command: at.TokenCommand, login: at.Login, Tenant: at.Tenant, Workspace: at.Workspace,
		},
	}
	if s.transport, err = newTransport(at); err != nil {
		return nil, err
	}
	opts := []client.Option{
		client.Transport(s.transport), client.Timeout(c.Timeout), client.Tries(callTries), client.UserAgent("lubdub-cli"),
		client.Scope(cmp.Or(c.Tenant, at.Tenant), cmp.Or(c.Workspace, at.Workspace)),
	}
	if at.AllowHTTP {
		opts = append(opts, client.AllowHTTP())
	}
	opts = append(opts, client.TokenFunc(s.Credential.Token))
	if s.Client, err = client.New(at.Server, opts...); err != nil {
		if strings.Contains(at.Server, "http://") {
			err = fmt.Errorf("%w\nA context may allow it: lubdub context set NAME --server %s --allow-http", err, at.Server)
		}
		return nil, exit.Misused(err)
	}
	return s, nil
}

// HTTP returns a client for what is not of the API. It sends no token.
func (s *Session) HTTP() *http.Client {
	return &http.Client{Transport: s.transport, Timeout: 10 * time.Second}
}

// Where names which deployment this is.
func (s *Session) Where() string {
	if s.ContextName == "" {
		return s.Server
	}
	return s.Server + " (context " + s.ContextName + ")"
}

// ClockAhead is how far the server's clock is ahead of ours, as far as its answers show.
func (s *Session) ClockAhead() time.Duration { return time.Duration(s.transport.clockAhead.Load()) }

// CertificateEnds is when the certificate that the server showed expires; ok is false when it showed none.
func (s *Session) CertificateEnds() (at time.Time, ok bool) {
	ends := s.transport.certEnds.Load()
	return time.Unix(ends, 0), ends != 0
}

// Now is the time by the server's clock, as far as its answers show.
func (s *Session) Now() time.Time { return time.Now().Add(s.ClockAhead()) }

// Note prints something for people alongside the answer.
func (s *Session) Note(format string, args ...any) {
	fmt.Fprintf(s.Env.Stderr, format+"\n", args...)
}

// Scope names the tenant and workspace of the calls.
func (s *Session) Scope() string {
	tenant, workspace := s.Credential.Tenant, s.Credential.Workspace
	if _, claims, err := ReadClaims(s.Credential.Text); err == nil && tenant == "" {
		tenant, workspace = claims.Tenant, claims.Workspace
	}
	if tenant == "" {
		return s.Where()
	}
	return fmt.Sprintf("%s/%s of %s", tenant, workspace, s.Where())
}
