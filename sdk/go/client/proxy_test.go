//go:build go1.25

package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// A client uses the proxies that its environment names, which Go reads once, so each case is a separate process.
func TestTheEnvironmentNamesProxies(t *testing.T) {
	if url := os.Getenv("LUBDUB_TEST_ASK"); url != "" {
		_, err := newClient(t, url, client.Token("tok"), client.AllowHTTP(), client.Tries(1)).Livez(t.Context())
		fmt.Println("answered:", err == nil)
		return
	}
	t.Parallel()
	var mu sync.Mutex
	var requests []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("Proxy-Authorization")))
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer proxy.Close()
	at := strings.Replace(proxy.URL, "://", "://u:p@", 1)
	for url, answered := range map[string]bool{"http://lubdub.test:8080": true, "https://lubdub.test": false, "http://near.test:9": false} {
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		program.Env = append(os.Environ(), "LUBDUB_TEST_ASK="+url, "HTTP_PROXY="+at, "HTTPS_PROXY="+at, "NO_PROXY=near.test")
		out, err := program.CombinedOutput()
		if err != nil || !strings.Contains(string(out), fmt.Sprintln("answered:", answered)) {
			t.Errorf("%s: %v\n%s", url, err, out)
		}
	}
	slices.Sort(requests)
	if want := []string{"CONNECT lubdub.test:443 Basic dTpw", "GET http://lubdub.test:8080/livez Basic dTpw"}; !slices.Equal(requests, want) {
		t.Errorf("the proxy received %q, want %q", requests, want)
	}
}
