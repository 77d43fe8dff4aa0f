package session

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
)

// unsigned returns a token that expires after a time. Nothing here verifies it.
func unsigned(after time.Duration) string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Appendf(nil, `{"rol":"admin","ten":"*","wsp":"*","exp":%d}`, time.Now().Add(after).Unix())
	return part([]byte(`{}`)) + "." + part(claims) + ".x"
}

// The provider accepts each refresh token once. Whatever fails between its answer and the end of a renewal, the next command can renew;
// several commands at once renew once.
func TestARenewalThatFailsHalfwayIsRepeated(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	refresh, refreshed, refusals := 1, 0, 1
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/token":
			if r.FormValue("refresh_token") != fmt.Sprint("r", refresh) || r.FormValue("client_id") != "cli" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
				return
			}
			refresh++
			refreshed++
			fmt.Fprintf(w, `{"access_token":"a","token_type":"Bearer","id_token":%q,"refresh_token":"r%d"}`, unsigned(time.Hour), refresh)
		case "/v1/tokens":
			if refusals > 0 {
				refusals--
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"invalid_request","message":"not now"}`)
				return
			}
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token":%q}`, unsigned(time.Hour))
		default:
			t.Errorf("an unexpected call: %s", r.URL)
		}
	}))
	defer site.Close()
	env := &Env{Context: t.Context(), Stderr: io.Discard, Environ: []string{"XDG_CONFIG_HOME=" + t.TempDir()}}
	if _, err := contexts.Add(env.Getenv, "ours", contexts.Context{
		Server: site.URL, Token: unsigned(time.Second),
		Login: &contexts.Login{TokenURL: site.URL + "/token", ClientID: "cli", RefreshToken: "r1"},
	}); err != nil {
		t.Fatal(err)
	}
	command := func() (string, error) {
		s, err := (&Flags{Timeout: 10 * time.Second}).Open(env)
		if err != nil {
			return "", err
		}
		defer s.Client.Close()
		return s.Credential.Token(t.Context())
	}
	if _, err := command(); err == nil || strings.Contains(err.Error(), "Sign in again") {
		t.Errorf("the server refuses: %v", err)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if text, err := command(); err != nil || !lasts(text) {
				t.Errorf("%q %v", text, err)
			}
		})
	}
	all.Wait()
	if refreshed != 2 {
		t.Errorf("it was renewed %d times", refreshed)
	}
	if err := contexts.Change(env.Getenv, func(file *contexts.File) error {
		at := file.Contexts["ours"]
		at.Token, at.Login.RefreshToken = "expired", "r1"
		return file.Set("ours", at)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := command(); err == nil || !strings.Contains(err.Error(), "Sign in again: lubdub login") {
		t.Errorf("the provider refuses: %v", err)
	}
}
