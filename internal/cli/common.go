package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/suggest"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// EnvContext names the context to use.
const EnvContext = "LUBDUB_CONTEXT"

// Common are the flags of every command that asks a server.
type Common struct {
	Output    output.Format `short:"o" enum:"table,wide,json,jsonl,yaml,name" default:"table" placeholder:"FORMAT" help:"table, wide, json, jsonl, yaml or name. JSON is the API's own."`
	Context   string        `placeholder:"NAME" predictor:"context" help:"Context to use instead of the current one (LUBDUB_CONTEXT)."`
	Server    string        `placeholder:"URL" help:"Server to ask instead of the context's (LUBDUB_URL, with LUBDUB_TOKEN)."`
	Tenant    string        `placeholder:"ID" help:"Tenant, where the token opens several."`
	Workspace string        `placeholder:"ID" help:"Workspace, where the token opens several."`
	Timeout   time.Duration `default:"10s" help:"How long a server may take to answer."`
}

// FlagsBehind puts flags of Common that stand before the command, as kubectl takes them, to its end.
func FlagsBehind(args []string) []string {
	n := 0
	for n < len(args) {
		name, _, whole := strings.Cut(args[n], "=")
		if !isCommon(name) {
			break
		}
		if n++; !whole {
			n++ // its value
		}
	}
	if n >= len(args) {
		return args
	}
	flags, rest := args[:n], args[n:]
	end := slices.Index(rest, "--")
	if end < 0 {
		end = len(rest)
	}
	return slices.Concat(rest[:end], flags, rest[end:])
}

func isCommon(flag string) bool {
	for field := range reflect.TypeFor[Common]().Fields() {
		short := field.Tag.Get("short")
		if flag == "--"+strings.ToLower(field.Name) || short != "" && flag == "-"+short {
			return true
		}
	}
	return false
}

// session is one command's work with one deployment.
type session struct {
	*output.Printer
	env       *Env
	client    *client.Client
	token     *credential
	name      string // of the context; empty: none
	server    string
	transport *transport
}

// tries is how often a call is made at most.
const tries = 2

// open finds the deployment that is meant and makes a client for it.
func (c *Common) open(env *Env) (*session, error) {
	if c.Timeout <= 0 {
		return nil, misusef("--timeout %v leaves no time for an answer; without the flag it is 10s", c.Timeout)
	}
	name, at, err := c.find(env)
	if err != nil {
		return nil, err
	}
	if err := checkServer(at.Server); err != nil {
		return nil, err
	}
	s := &session{
		Printer: &output.Printer{W: env.Stdout, Format: c.Output, Colour: env.colourful()}, env: env, name: name, server: at.Server,
		token: &credential{
			env: env, context: name, text: at.Token, command: at.TokenCommand, tenant: at.Tenant, workspace: at.Workspace,
		},
	}
	if s.transport, err = newTransport(at); err != nil {
		return nil, err
	}
	opts := []client.Option{
		client.Transport(s.transport), client.Timeout(c.Timeout), client.Tries(tries), client.UserAgent("lubdub-cli"),
		client.Scope(cmp.Or(c.Tenant, at.Tenant), cmp.Or(c.Workspace, at.Workspace)),
	}
	if at.AllowHTTP {
		opts = append(opts, client.AllowHTTP())
	}
	opts = append(opts, client.TokenFunc(s.token.find))
	if s.client, err = client.New(at.Server, opts...); err != nil {
		if strings.Contains(at.Server, "http://") {
			err = fmt.Errorf("%w\nA context may allow it: lubdub context set NAME --server %s --allow-http", err, at.Server)
		}
		return nil, misused(err)
	}
	return s, nil
}

// find says which context is meant. One that is named on the command line counts before variables, these before the current one.
// A context's token goes to the context's server only.
func (c *Common) find(env *Env) (name string, at contexts.Context, err error) {
	server, token := c.Server, env.Getenv(client.EnvToken)
	if c.Context == "" {
		server = cmp.Or(server, env.Getenv(client.EnvURL))
		if file := env.Getenv(client.EnvTokenFile); token == "" && file != "" {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", at, misused(fmt.Errorf("%s: %w", client.EnvTokenFile, err))
			}
			token = strings.TrimSpace(string(text))
		}
	} else if server == "" {
		token = ""
	}
	if server != "" {
		return "", contexts.Context{Server: server, Token: token}, nil
	}
	file, err := contexts.Open(env.Getenv)
	if err != nil {
		return "", at, misused(err)
	}
	name = cmp.Or(c.Context, env.Getenv(EnvContext), file.Current)
	if name == "" {
		return "", at, misusef("no server is known: run `lubdub dev` to try one, or name yours with\n" +
			"  lubdub context set prod --server https://lubdub.example.com --token-command 'cat ~/.lubdub-token'")
	}
	at, ok := file.Contexts[name]
	if !ok {
		return "", at, misusef("there is no context %q%s; run `lubdub context ls` to list them", name,
			suggest.DidYouMean(name, file.Names()))
	}
	if token != "" {
		at.Token, at.TokenCommand = token, ""
	}
	return name, at, nil
}

// checkServer refuses what is no address. It is not repeated, since it may hold a password.
func checkServer(server string) error {
	for one := range strings.SplitSeq(server, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return misusef("the server's address is not like https://host:port; see --server, %s or the context", client.EnvURL)
		}
	}
	return nil
}

// where tells which deployment this is.
func (s *session) where() string {
	if s.name == "" {
		return s.server
	}
	return s.server + " (context " + s.name + ")"
}

// transport carries requests, and learns the server's clock and certificate from the answers.
type transport struct {
	http.RoundTripper
	clockAhead atomic.Int64 // how far the server's clock is ahead of ours, in nanoseconds
	certEnds   atomic.Int64 // when the server's certificate does, in seconds since 1970; 0: it showed none
}

func newTransport(at contexts.Context) (*transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if at.CAFile != "" {
		pem, err := os.ReadFile(at.CAFile)
		if err != nil {
			return nil, misused(err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, misusef("%s holds no certificate in PEM form", at.CAFile)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &transport{RoundTripper: t}, nil
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(req)
	if err == nil {
		if date, failed := http.ParseTime(res.Header.Get("Date")); failed == nil {
			ahead := time.Until(date)
			if ahead.Abs() < 2*time.Second { // the header has whole seconds
				ahead = 0
			}
			t.clockAhead.Store(int64(ahead))
		}
		if res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
			t.certEnds.Store(res.TLS.PeerCertificates[0].NotAfter.Unix())
		}
	}
	return res, err
}

// clockAhead is how far the server's clock is ahead of ours, as far as its answers show.
func (s *session) clockAhead() time.Duration { return time.Duration(s.transport.clockAhead.Load()) }

// certificateEnds is when the certificate that the server showed expires; ok is false when it showed none.
func (s *session) certificateEnds() (at time.Time, ok bool) {
	ends := s.transport.certEnds.Load()
	return time.Unix(ends, 0), ends != 0
}

// now is the time by the server's clock, as far as its answers show.
func (s *session) now() time.Time { return time.Now().Add(s.clockAhead()) }

// do makes a call; its errors say what to do.
func (s *session) do(ctx context.Context, r client.Request) (json.RawMessage, error) {
	raw, err := s.client.Do(ctx, r)
	return raw, s.explain(err)
}

// get reads from the API: the bytes, and what they say.
func get[T any](ctx context.Context, s *session, path string, query url.Values) (json.RawMessage, *T, error) {
	return call[T](ctx, s, client.Request{Path: path, Query: query})
}

// post acts.
func post[T any](ctx context.Context, s *session, path string, body any) (json.RawMessage, *T, error) {
	if body == nil {
		body = struct{}{}
	}
	return call[T](ctx, s, client.Request{Method: http.MethodPost, Path: path, Body: body})
}

func call[T any](ctx context.Context, s *session, r client.Request) (json.RawMessage, *T, error) {
	raw, err := s.do(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, nil, fmt.Errorf("%s answers with something else than Lubdub would: %w", s.where(), err)
	}
	return raw, out, nil
}

// note tells people something beside the answer.
func (s *session) note(format string, args ...any) {
	fmt.Fprintf(s.env.Stderr, format+"\n", args...)
}

// explain adds to an error of the client what to do about it.
func (s *session) explain(err error) error {
	var refused *client.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case !errors.As(err, &refused):
		if client.MayRetry(err) {
			return unanswered(fmt.Errorf("%s does not answer: %w", s.where(), err))
		}
		return err
	case refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w\n%s", refusal(refused), s.token.next())
	case refused.Status == http.StatusForbidden:
		return fmt.Errorf("%w%s", refusal(refused), s.token.role())
	}
	return refusal(refused)
}
