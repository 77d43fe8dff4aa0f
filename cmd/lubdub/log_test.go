package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// tokenOf creates a control token for a subject.
func tokenOf(t *testing.T, role, subject string) string {
	t.Helper()
	code, text, stderr := command(withKey, "token", "--role", role, "--subject", subject)
	if code != exitOK {
		t.Fatal(stderr)
	}
	return strings.TrimSpace(text)
}

// wantStatus fails the test unless a request is answered so, and returns the answer.
func wantStatus(t *testing.T, status int, method, url, token, body string) string {
	t.Helper()
	got, answer := request(method, url, token, body)
	if got != status {
		t.Fatalf("%s %s: %d %s", method, url, got, answer)
	}
	return answer
}

// The JSON log of a real run shows what happened and who did it, the line about listening is one of its lines, and durations are
// milliseconds with the unit in their names.
func TestTheJSONLogOfARun(t *testing.T) {
	t.Parallel()
	r := serveEmbedded(t, "--log-format", "json", "--worker-heartbeat-interval", "500ms")
	listening := r.line("listening")
	base := apiPattern.FindStringSubmatch(listening)[1]
	wantStatus(t, 201, "POST", base+"/v1/workers", tokenOf(t, "admin", "enroller"), `{"queue":"q","types":["x"],"machineId":"m1"}`)
	e := createRunning(t, base)
	until(t, "the silent task is failed", func() bool { return state(t, base, e.TaskID).State == v1.Failed })
	until(t, "the silent worker is offline", func() bool {
		_, body := request("GET", base+"/v1/workers?status=OFFLINE", adminToken(t), "")
		return strings.Contains(body, `"workerId"`)
	})
	wantStatus(t, 409, "POST", base+"/v1/workers:select", tokenOf(t, "operator", "ann"), `{"queue":"q","type":"x"}`)
	wantStatus(t, 200, "POST", base+"/v1/queues/q/pause", tokenOf(t, "operator", "ann"), "")
	wantStatus(t, 200, "POST", base+"/v1/system:release", tokenOf(t, "operator", "bob"), "")
	wantStatus(t, 200, "POST", base+"/v1/tokens:revoke", tokenOf(t, "admin", "carol"), `{"subject":"ann"}`)
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != exitOK {
		t.Fatalf("%d: %s", code, r.errs)
	}

	var lines []map[string]any
	for text := range strings.Lines(listening + "\n" + r.errs.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, name := range []string{"time", "level", "msg"} {
			if line[name] == nil {
				t.Errorf("no %s: %s", name, text)
			}
		}
		for name, value := range line {
			if n, ok := value.(float64); ok && n >= 1e6 {
				t.Errorf("%s is %v, which looks like ns: %s", name, n, text)
			}
		}
		lines = append(lines, line)
	}
	for _, want := range []map[string]any{
		{"api": base, "roles": "api,sweeper", "redis": "embedded"},
		{"msg": "task heartbeat is stale", "taskId": e.TaskID, "attempt": 1.0, "tenantId": "default", "workspaceId": "default",
			"reason": "HEARTBEAT_TIMEOUT", "requeued": false},
		{"msg": "worker heartbeat is stale", "machineId": "m1", "tenantId": "default"},
		{"msg": "no workers with fresh heartbeats available", "by": "ann", "considered": 1.0, "stale": 1.0},
		{"msg": "act", "op": "pauseQueue", "by": "ann", "queue": "q", "tenantId": "default"},
		{"msg": "operators released the mass-expiry brake", "by": "bob", "lastsMs": 600000.0},
		{"msg": "tokens were revoked", "by": "carol", "subject": "ann"},
		{"msg": "stopping", "shutdownTimeoutMs": 20000.0, "drainDelayMs": 0.0},
	} {
		if !slices.ContainsFunc(lines, func(line map[string]any) bool {
			for name, value := range want {
				if line[name] != value {
					return false
				}
			}
			return true
		}) {
			t.Errorf("no line has %v in\n%s", want, r.errs)
		}
	}
	for _, name := range []string{`"lastSeen":"`, `"silentMs":`, `"detectionLagMs":`, `"by":"swp_`} {
		if !strings.Contains(r.errs.String(), name) {
			t.Errorf("no %s in\n%s", name, r.errs)
		}
	}
}

// A token that one process revokes is refused by the others.
func TestARevokedTokenIsRefusedByEveryProcess(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	var bases []string
	for range 2 {
		base, _ := launch(t, withKey, append([]string{"serve", "--redis", redis.URL(), "--shards", "2"}, anyPort...)...).urls()
		bases = append(bases, base)
	}
	ann := tokenOf(t, "viewer", "ann")
	for _, base := range bases {
		wantStatus(t, http.StatusOK, "GET", base+"/v1/tasks", ann, "")
	}
	wantStatus(t, http.StatusOK, "POST", bases[0]+"/v1/tokens:revoke", adminToken(t), `{"subject":"ann"}`)
	wantStatus(t, http.StatusUnauthorized, "GET", bases[0]+"/v1/tasks", ann, "")
	until(t, "the other one refuses it", func() bool {
		status, _ := request("GET", bases[1]+"/v1/tasks", ann, "")
		return status == http.StatusUnauthorized
	})
	wantStatus(t, http.StatusOK, "GET", bases[1]+"/v1/tasks", adminToken(t), "")
}
