package why

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// What an operator has done is explained with who did it and the command that undoes it; what cannot be read, with the reason.
func TestWhyNamesTheNextCommand(t *testing.T) {
	const event = `{"events":[{"id":"1","time":"2026-01-02T03:04:05.000Z","type":"queue.paused","subject":"mail","by":"ann"}]}`
	for name, c := range map[string]struct {
		explain Explainer
		id      string
		answers map[string]string // by path; a status instead of a body is a refusal
		want    []string
	}{
		"a cordoned worker": {ExplainWorker, "wkr_1", map[string]string{
			"/v1/workers/wkr_1": `{"workerId":"wkr_1","status":"DRAINING","cordon":{"since":"2026-01-02T03:04:05.000Z"},
				"heldCount":3,"maxConcurrent":3,"unschedulableReasons":["status","cordoned","stale","full"]}`},
			[]string{"it takes no new tasks until `lubdub worker uncordon wkr_1`.", "Not eligible for work: its status is DRAINING, it is " +
				"cordoned, its heartbeat is overdue, it holds 3 of at most 3 tasks."}},
		"a worker that the brake holds": {ExplainWorker, "wkr_1", map[string]string{
			"/v1/workers/wkr_1": `{"workerId":"wkr_1","status":"ONLINE","liveness":"LOST"}`,
			"/v1/system": `{"findings":[{"code":"settings","severity":"warn","message":"Replicas differ."},
				{"code":"brake","severity":"warn","message":"The brake holds it."}]}`},
			[]string{"Why not yet: The brake holds it.\nOver the last"}},
		"a silent worker that a sweeper is about to declare dead": {ExplainWorker, "wkr_1", map[string]string{
			"/v1/workers/wkr_1": `{"workerId":"wkr_1","status":"ONLINE","liveness":"LOST"}`, "/v1/system": `{"findings":[]}`},
			[]string{"A sweeper will declare it dead in a moment."}},
		"a draining worker": {ExplainWorker, "wkr_1", map[string]string{"/v1/workers/wkr_1": `{"workerId":"wkr_1","status":"DRAINING"}`},
			[]string{"`lubdub worker resume wkr_1` undoes this."}},
		"a paused queue": {ExplainQueue, "mail", map[string]string{"/v1/queues/mail": `{"queue":"mail","paused":true}`, "/v1/events": event},
			[]string{"Queue mail has been paused since 2026-01-02", " by ann: no task is dispatched until `lubdub queue resume mail`."}},
		"a paused queue, and no role for events": {ExplainQueue, "mail", map[string]string{
			"/v1/queues/mail": `{"queue":"mail","paused":true}`, "/v1/events": "403"},
			[]string{"Queue mail is paused: no task is dispatched until `lubdub queue resume mail`."}},
		"a task in a paused queue": {ExplainTask, "t1", map[string]string{"/v1/tasks/t1": `{"taskId":"t1","state":"QUEUED","queue":"mail"}`,
			"/v1/queues/mail": `{"queue":"mail","paused":true}`, "/v1/events": event},
			[]string{"Queue mail has been paused since 2026-01-02", " by ann: "}},
		"a task that is out of retries": {ExplainTask, "t1", map[string]string{
			"/v1/tasks/t1": `{"taskId":"t1","state":"FAILED","retriesExhausted":true}`},
			[]string{"its retry policy is exhausted.", "Once the cause is fixed, `lubdub task retry t1` runs it again."}},
		"an attempt that a cancel ended": {ExplainTask, "t1", map[string]string{
			"/v1/tasks/t1": `{"taskId":"t1","state":"CANCELLED","reason":"TERMINATED","history":[{"attempt":1,"outcome":"CANCELLED",
				"reason":"TERMINATED","evidence":null}]}`},
			[]string{"A cancel without a grace period ended it, without its worker."}},
		"a worker that may not be read": {ExplainTask, "t1", map[string]string{
			"/v1/tasks/t1": `{"taskId":"t1","state":"RUNNING","workerId":"wkr_1"}`, "/v1/workers/wkr_1": "403"},
			[]string{"This token's role may not read worker wkr_1; one with the role viewer may."}},
		"a worker that is not stored": {ExplainTask, "t1", map[string]string{
			"/v1/tasks/t1": `{"taskId":"t1","state":"RUNNING","workerId":"wkr_1"}`, "/v1/workers/wkr_1": "404"},
			[]string{"Worker wkr_1 is not stored here: it never registered, or it ended longer ago than workers are kept."}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch body := c.answers[r.URL.Path]; body {
				case "403":
					w.WriteHeader(http.StatusForbidden)
				case "404":
					w.WriteHeader(http.StatusNotFound)
				case "":
					_, _ = io.WriteString(w, `{"tasks":[],"events":[]}`)
				default:
					_, _ = io.WriteString(w, body)
				}
			}))
			defer server.Close()
			f := session.Flags{Server: server.URL, Output: "table", Timeout: 10 * time.Second}
			s, err := f.Open(&session.Env{Context: t.Context(), Stdout: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.explain(t.Context(), s, c.id)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(a.Sentences, "\n")
			for _, part := range c.want {
				if !strings.Contains(text, part) {
					t.Errorf("it does not say %q:\n%s", part, text)
				}
			}
		})
	}
}
