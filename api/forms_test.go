package api

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/workers"
)

// A route's limit does not depend on how its path is written.
func TestOneLimitHoweverAPathIsWritten(t *testing.T) {
	t.Parallel()
	for _, r := range routes {
		plain := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(r.Pattern, "x1")
		want := bodyLimit([]byte(r.Method), []byte(plain))
		if err := routeOf(testAPI, r.Method, plain, r); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(plain); i++ {
			for _, verb := range []string{"%%%02x", "%%%02X"} {
				if plain[i] == '/' {
					continue
				}
				for _, query := range []string{"", "?", "?tenantId=a%2fheartbeat"} {
					written := plain[:i] + fmt.Sprintf(verb, plain[i]) + plain[i+1:] + query
					if err := routeOf(testAPI, r.Method, written, r); err != nil {
						t.Error(err)
					}
					if got := bodyLimit([]byte(r.Method), []byte(written)); got != want {
						t.Errorf("%s %s takes %d bytes, and as %s %d", r.Method, plain, want, written, got)
					}
				}
			}
		}
	}
	e := newEnv(t)
	head := fmt.Sprintf("POST /v1/tasks/task_1/complete%%64 HTTP/1.1\nHost: x\nAuthorization: Bearer %s\nContent-Length: %d\n\n", e.task(),
		httpapi.LimitCallback+1)
	if got := e.raw(head); !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, v1.CodeBodyTooLarge) {
		t.Errorf("%q", got)
	}
}

func routeOf(a *httpapi.API, method, target string, want *httpapi.Route) error {
	path, _, err := httpapi.SplitTarget([]byte(target))
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	if got, _, err := a.Find(method, path); err != nil || got != want {
		return fmt.Errorf("%s is no %s: %w", target, want, err)
	}
	return nil
}

// Every route refuses a body that is declared as compressed, or as not JSON.
func TestNoEncodedBodyIsRead(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	beatCount := 0
	e.fake.beat = func(*beats.Beat) { beatCount++ }
	worker, _, err := httpapi.MintWorker(e.keys, model.Scope{Tenant: "acme", Workspace: "prod"},
		&workers.Registered{WorkerID: fakeWorkerID, Queue: "task_1"}, e.now())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if r.Method == "GET" || r.Method == "DELETE" {
			continue
		}
		tokens := []string{e.control(roleAdmin)}
		switch r.Access {
		case httpapi.ForTask, httpapi.ForBeat, httpapi.ForItems:
			tokens = []string{e.task(), worker}
		case httpapi.ForWorker:
			tokens = []string{worker}
		}
		id := "task_1"
		if r.IDField() == "workerId" {
			id = fakeWorkerID
		}
		path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(r.Pattern, id)
		body := `{"attempt":1,"heartbeats":[{"taskId":"task_1","attempt":1,"taskToken":"` + e.task() + `"}]}`
		for _, token := range tokens {
			for _, encoding := range []string{"gzip", "identity", "GZIP, br"} {
				e.do(r.Method, path, token, body, "Content-Encoding", encoding).refused(415, v1.CodeUnsupportedMedia)
				e.do(r.Method, path+"?", token, body, "Content-Encoding", encoding).refused(415, v1.CodeUnsupportedMedia)
			}
			e.do(r.Method, path, token, body, "Content-Type", "text/plain").refused(415, v1.CodeUnsupportedMedia)
		}
	}
	if beatCount > 0 || e.fake.createdCount() > 0 {
		t.Errorf("%d beats and %d creations were taken", beatCount, e.fake.createdCount())
	}
}

// A flood of late results is counted one by one, and fills no disk.
func TestLateResultLogsAreRateLimited(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.fake.complete = func(*model.Attempt, model.Completion) (model.Completed, error) {
		return model.Completed{}, &model.Error{Code: model.AlreadyTerminal, State: model.Failed}
	}
	sendLate := func() {
		e.do("POST", "/v1/tasks/task_1/completed", e.task(), `{"attempt":1,"outcome":"SUCCEEDED"}`).refused(409, v1.CodeTaskAlreadyTerminal)
	}
	const n, seconds = 100, 3
	for range seconds {
		for range n {
			sendLate()
		}
		e.advance(time.Second)
	}
	sendLate()
	reported, lines := 0, 0
	for _, line := range strings.Split(e.log.String(), "\n") {
		if strings.Contains(line, "late result ignored") {
			lines++
			more, _ := strconv.Atoi(regexp.MustCompile(`moreNotLogged=(\d+)`).FindStringSubmatch(line)[1])
			reported += 1 + more
		}
	}
	if lines != 10*seconds+1 || reported != n*seconds+1 {
		t.Errorf("%d lines report %d late results, want %d", lines, reported, n*seconds+1)
	}
	if got := e.metric("lubdub_http_late_results_total"); got != n*seconds+1 {
		t.Errorf("%v are counted", got)
	}
}
