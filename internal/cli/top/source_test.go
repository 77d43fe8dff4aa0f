package top

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/doctor"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/cli/status"
)

// While no Redis responds, what the server knows without it is the answer of status, top and doctor.
func TestWithoutRedisTheServersWordIsShown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			_, _ = io.WriteString(w, `{"status":"degraded","message":"Redis is not responding"}`)
			return
		case "/version":
			_, _ = io.WriteString(w, `{"name":"lubdub","version":"1.2.3"}`)
			return
		case "/v1/system":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":"store_unavailable","message":"no","summary":{"severity":"fail","title":"Timeouts are paused"},"findings":[`+
				`{"code":"redis","severity":"fail","about":"us","message":"Redis r1 is not responding.","remedy":"look"}]}`)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":"store_unavailable","message":"no"}`)
	}))
	defer server.Close()
	run := func(cmd interface{ Run(*session.Env) error }) (string, int) {
		var out bytes.Buffer
		err := cmd.Run(&session.Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard})
		return out.String(), exit.Code(err)
	}
	common := session.Flags{}
	common.Server, common.Output, common.Timeout = server.URL, "table", 10*time.Second
	text, code := run(&status.Command{Flags: common})
	for _, part := range []string{"UNHEALTHY (1 failure)", "Not available now.",
		"  Timeouts are paused.\n  Lubdub:  fail Redis r1 is not responding.\n  workers: not available now\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("status does not say %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "Some answers are missing") || strings.Contains(text, "None.") || code != exit.Unavailable {
		t.Errorf("%d:\n%s", code, text)
	}
	text, code = run(&doctor.Command{Flags: common})
	if !strings.Contains(text, "Redis r1 is not responding") || strings.Contains(text, "scripts") || code != exit.Unavailable {
		t.Errorf("doctor: %d:\n%s", code, text)
	}
	s, err := common.Open(&session.Env{Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&source{s: s}).Look(t.Context(), 0)
	if err != nil || !p.Partial || len(p.Findings) != 1 || p.Findings[0].Message != "Redis r1 is not responding." {
		t.Errorf("top: %v %+v", err, p)
	}
}
