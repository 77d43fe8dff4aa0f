package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// newSession returns a session that writes tables to out; no server answers it.
func newSession(t *testing.T, out io.Writer) *session {
	s, err := (&Common{Server: "http://127.0.0.1:8080", Output: "table", Timeout: time.Second}).open(&Env{Context: t.Context(), Stdout: out})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Workers that were lost are shown with what became of their tasks, also when nothing is lost any more.
func TestStatusShowsWhoWasLost(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	s := newSession(t, &out)
	name := "mailer"
	st := &state{verdicts: &v1.VerdictCounts{}, responds: true, System: &v1.System{RecentlyLostTotal: 900}}
	for n := range 7 {
		st.System.RecentlyLost = append(st.System.RecentlyLost, v1.LostWorker{
			WorkerID: fmt.Sprintf("wkr_%d", n), Name: &name, MachineID: "host-7", Queue: "mail", Reason: "HEARTBEAT_TIMEOUT",
			LastHeartbeatAt: v1.At(now.Add(-121 * time.Minute)), LostAt: v1.At(now.Add(-61 * time.Minute)),
			Attempts: 4, Requeued: 2, Failed: 1, Exhausted: 1,
		})
	}
	showLost(s, st)
	text := out.String()
	for _, part := range []string{
		"  Worker wkr_0 (mailer) on host-7 (queue mail) lost 1h1m ago (HEARTBEAT_TIMEOUT), last heartbeat 2h1m ago: 4 attempts, 2 requeued, " +
			"1 failed, 1 out of retries\n",
		"  and 895 more workers: lubdub status -o json\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "Nothing") {
		t.Errorf("it says\n%s", text)
	}
}

// What a server cannot tell is not said to be well.
func TestWhatIsNotToldIsNotWell(t *testing.T) {
	var out bytes.Buffer
	s := newSession(t, &out)
	st := &state{Health: &v1.Health{Status: "degraded", Message: "The store does not answer"}, unread: errors.New("the store does not answer")}
	show(s, st, st.judged())
	if text := out.String(); !strings.Contains(text, "  workers: not available now\n") || strings.Contains(text, "no problems found") {
		t.Errorf("it says\n%s", text)
	}
}

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
	run := func(cmd interface{ Run(*Env) error }) (string, int) {
		var out bytes.Buffer
		err := cmd.Run(&Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard})
		return out.String(), ExitCode(err)
	}
	common := Common{}
	common.Server, common.Output, common.Timeout = server.URL, "table", 10*time.Second
	text, code := run(&statusCmd{Common: common})
	for _, part := range []string{"UNHEALTHY (1 failure)", "Not available now.",
		"  Timeouts are paused.\n  Lubdub:  fail Redis r1 is not responding.\n  workers: not available now\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("status does not say %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "Some answers are missing") || strings.Contains(text, "None.") || code != ExitFailed {
		t.Errorf("%d:\n%s", code, text)
	}
	text, code = run(&doctorCmd{Common: common})
	if !strings.Contains(text, "Redis r1 is not responding") || strings.Contains(text, "scripts") || code != ExitFailed {
		t.Errorf("doctor: %d:\n%s", code, text)
	}
	s, err := common.open(&Env{Context: t.Context()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&topSource{s: s}).Look(t.Context(), 0)
	if err != nil || !p.Partial || len(p.Findings) != 1 || p.Findings[0].Message != "Redis r1 is not responding." {
		t.Errorf("top: %v %+v", err, p)
	}
}
