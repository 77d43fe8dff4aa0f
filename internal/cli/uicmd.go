package cli

import (
	"cmp"
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
)

type uiCmd struct {
	Print  bool `help:"Print the address, which holds the token, instead of opening it."`
	Common `embed:""`
}

// Help tells where the token goes.
func (*uiCmd) Help() string {
	return "Opens the dashboard with the context's token in the address's fragment, which browsers send to nobody. The browser is told an " +
		"address on this machine that leads there once, so that the token stands in no list of processes. BROWSER names another browser."
}

func (c *uiCmd) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	text, err := s.tokenText(env.Context)
	if err != nil {
		return err
	}
	if text == "" {
		return misuse("%s", s.token.next())
	}
	address := DashboardURL(s.server, text, cmp.Or(c.Tenant, s.token.tenant), cmp.Or(c.Workspace, s.token.workspace))
	if c.Print {
		_, err := fmt.Fprintln(env.Stdout, address)
		return err
	}
	s.note("Opening the dashboard of %s", s.where())
	return handOver(env, address)
}

// DashboardURL is the address of a server's dashboard, with what signs its user in. That stands in the fragment, which browsers
// send to nobody.
func DashboardURL(server, token, tenant, workspace string) string {
	signIn := url.Values{"token": {token}}
	if tenant != "" && workspace != "" {
		signIn.Set("tenantId", tenant)
		signIn.Set("workspaceId", workspace)
	}
	return server + "/ui/#" + signIn.Encode()
}

// browserWait is how long a browser may take to start and to follow where it is led.
const browserWait = time.Minute

// handOver has a browser open an address that nobody else sees.
func handOver(env *Env, address string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	path, led := "/"+rand.Text(), make(chan struct{})
	var once sync.Once
	door := &http.Server{ReadHeaderTimeout: browserWait, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := false
		if r.Method == http.MethodGet && r.URL.Path == path {
			once.Do(func() { first = true })
		}
		if !first {
			http.NotFound(w, r)
			return
		}
		defer close(led)
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, address, http.StatusFound)
	})}
	served := make(chan error, 1)
	go func() { served <- door.Serve(ln) }()
	defer func() {
		_ = door.Shutdown(env.Context) // which waits for the answer to be taken
		_ = door.Close()
		<-served
	}()
	opener := cmp.Or(env.Getenv("BROWSER"), map[string]string{"darwin": "open"}[runtime.GOOS], "xdg-open")
	cmd := exec.CommandContext(env.Context, opener, "http://"+ln.Addr().String()+path)
	cmd.Env, cmd.Stderr = env.Environ, env.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("no browser can be started (%w); `lubdub ui --print` prints the address, which holds the token", err)
	}
	go func() { _ = cmd.Wait() }() // a browser may stay for as long as its window does
	late := time.NewTimer(browserWait)
	defer late.Stop()
	select {
	case <-led:
		return nil
	case <-env.Context.Done():
		return env.Context.Err()
	case <-late.C:
		return errors.New("no browser came; `lubdub ui --print` prints the address, which holds the token")
	}
}
