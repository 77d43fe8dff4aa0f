// Package ui opens the dashboard, signed in.
package ui

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type Command struct {
	Print         bool          `help:"Print the address, which holds the token, instead of opening it."`
	For           time.Duration `default:"1h" help:"How long the page's token is valid: 12h at most, and no longer than the context's own token."`
	Role          string        `placeholder:"ROLE" help:"Role of the page's token, with no more rights than the context's own, which is the default."`
	session.Flags `embed:""`
}

func (*Command) Help() string {
	return "Opens the dashboard with a short-lived token of the context's role, made by the server, in the address's fragment, which " +
		"browsers do not send. An older server cannot make one; then the page gets the context's own token, and the command prints a " +
		"warning. The browser opens an address on this machine that redirects there once, so that the token appears in no process " +
		"list. BROWSER names another browser."
}

func (c *Command) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	text, err := c.pageToken(env.Context, s)
	if err != nil {
		return err
	}
	address := DashboardURL(s.Server, s.ContextName, text, cmp.Or(c.Tenant, s.Credential.Tenant), cmp.Or(c.Workspace, s.Credential.Workspace))
	if c.Print {
		_, err := fmt.Fprintln(env.Stdout, address)
		return err
	}
	s.Note("Opening the dashboard of %s", s.Where())
	return openBrowser(env, address)
}

// pageToken returns what the page is signed in with.
func (c *Command) pageToken(ctx context.Context, s *session.Session) (string, error) {
	own, err := s.Credential.Token(ctx)
	if err != nil {
		return "", err
	}
	if own == "" {
		return "", exit.Misusef("%s", s.Credential.RenewalHint())
	}
	life := c.For.Milliseconds()
	_, made, err := session.Post[v1.CreateTokenResponse](ctx, s, "/v1/tokens", v1.CreateTokenRequest{Role: c.Role, TTLMs: &life})
	switch {
	case err == nil:
		return made.Token, nil
	case exit.Code(err) != exit.NotFound:
		return "", err
	}
	if c.Role != "" {
		return "", fmt.Errorf("the server is older than this command and makes no tokens, so the page cannot have the role %s; "+
			"without --role it gets the context's own token", c.Role)
	}
	until := "for as long as it does"
	if _, claims, err := session.ReadClaims(own); err == nil {
		until = "until " + time.Unix(claims.ExpiresAt, 0).UTC().Format(time.RFC3339)
	}
	s.Note("The server is older than this command and makes no shorter token: the page gets the context's own, which holds %s", until)
	return own, nil
}

// DashboardURL returns the address of a server's dashboard, with what signs its user in and the context that its command lines name,
// if any. These are in the fragment, which browsers never send.
func DashboardURL(server, context, token, tenant, workspace string) string {
	signIn := url.Values{"token": {token}}
	if context != "" {
		signIn.Set("context", context)
	}
	if tenant != "" && workspace != "" {
		signIn.Set("tenantId", tenant)
		signIn.Set("workspaceId", workspace)
	}
	return server + "/ui/#" + signIn.Encode()
}

// browserWait is how long a browser may take to start and to follow where it is led.
const browserWait = time.Minute

// openBrowser has a browser open an address that no other process sees.
func openBrowser(env *session.Env, address string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	path, visited := "/"+rand.Text(), make(chan struct{})
	var once sync.Once
	server := &http.Server{ReadHeaderTimeout: browserWait, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := false
		if r.Method == http.MethodGet && r.URL.Path == path {
			once.Do(func() { first = true })
		}
		if !first {
			http.NotFound(w, r)
			return
		}
		defer close(visited)
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, address, http.StatusFound)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	defer func() {
		_ = server.Shutdown(env.Context) // which waits for the answer to be taken
		_ = server.Close()
		<-served
	}()
	opener := cmp.Or(env.Getenv("BROWSER"), map[string]string{"darwin": "open"}[runtime.GOOS], "xdg-open")
	cmd := exec.CommandContext(env.Context, opener, "http://"+ln.Addr().String()+path)
	cmd.Env, cmd.Stderr = env.Environ, env.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("no browser can be started (%w); `lubdub ui --print` prints the address, which holds the token", err)
	}
	go func() { _ = cmd.Wait() }() // a browser may stay for as long as its window does
	timeout := time.NewTimer(browserWait)
	defer timeout.Stop()
	select {
	case <-visited:
		return nil
	case <-env.Context.Done():
		return env.Context.Err()
	case <-timeout.C:
		return errors.New("no browser came; `lubdub ui --print` prints the address, which holds the token")
	}
}
