package api

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiqueues "github.com/lubdub-io/lubdub/api/queues"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
)

// Why calls end that wait.
const (
	whyDraining = "draining"
	whyToken    = "token_expired"
	whyRevoked  = "token_revoked"
)

// waitingTest is a call that waits, for TestEveryCallThatWaitsEndsWithItsToken.
type waitingTest struct {
	revoke string                         // body that revokes its token
	ended  func(t *testing.T, why string) // waits for its end and checks how it ended
}

// waitingCalls begins each operation that waits, with a new token that is valid for about a minute.
var waitingCalls = map[string]func(l *live) waitingTest{
	opClaim: func(l *live) waitingTest {
		w := l.worker("w")
		got := l.claimInBackground(w)
		return waitingTest{`{"workerId":"` + w.WorkerID + `"}`, endOf(got, 200)}
	},
	opExchange: func(l *live) waitingTest {
		w := l.worker("w")
		got := make(chan *answer, 1)
		go func() { got <- l.mine(w, "exchange", `{"seq":1,"claim":{"waitMs":60000,"claimId":"c1"}}`) }()
		return waitingTest{`{"workerId":"` + w.WorkerID + `"}`, func(t *testing.T, why string) {
			// The heartbeat is stored, whatever becomes of the claim.
			a := (<-got).want(200)
			if refused := strings.Contains(a.body, `"claimError":{"status":401`); refused != (why != whyDraining) {
				t.Errorf("%s: %s", why, a.body)
			}
		}}
	},
	opGet: func(l *live) waitingTest { return l.taskWait("GET", "/v1/tasks/t?waitMs=60000", "") },
	opWaitTasks: func(l *live) waitingTest {
		return l.taskWait("POST", "/v1/tasks:wait", `{"taskIds":["t"],"waitMs":60000}`)
	},
	opEvents: func(l *live) waitingTest {
		s := l.stream(l.controlOf(token.Control{Role: roleViewer, Subject: "ann", TTL: model.WorkerTokenTTL}), "type=worker.late")
		return waitingTest{`{"subject":"ann"}`, func(t *testing.T, why string) {
			f := s.next()
			s.wantEnd(f, "end", `{"reason":"`+why+`","cursor":"`+f.id+`"}`)
		}}
	},
}

// taskWait waits for a task.
func (l *live) taskWait(method, path, body string) waitingTest {
	l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"t","queue":"q"}`).want(201)
	got := make(chan *answer, 1)
	ann := l.controlOf(token.Control{Role: roleViewer, Subject: "ann", TTL: model.WorkerTokenTTL})
	go func() { got <- l.do(method, path, ann, body) }()
	return waitingTest{`{"subject":"ann"}`, endOf(got, 503)}
}

// endOf checks the answer of a call that has only one. draining: its status when the replica stops.
func endOf(got <-chan *answer, draining int) func(t *testing.T, why string) {
	return func(t *testing.T, why string) {
		a := <-got
		if why == whyDraining {
			a.want(draining)
			return
		}
		a.refused(401, v1.CodeUnauthorized)
	}
}

// worker registers a worker of acme/prod.
func (l *live) worker(name string) *v1.RegisterWorkerResponse {
	l.t.Helper()
	var w v1.RegisterWorkerResponse
	l.do("POST", "/v1/workers", l.control(roleEnroll), `{"name":"`+name+`","queue":"q","types":["x"],"machineId":"m1"}`).want(201).into(&w)
	return &w
}

// claimInBackground begins a claim that waits for as long as one may.
func (l *live) claimInBackground(w *v1.RegisterWorkerResponse) <-chan *answer {
	got := make(chan *answer, 1)
	go func() { got <- l.do("POST", "/v1/queues/q/claim", w.WorkerToken, `{"waitMs":60000}`) }()
	return got
}

// Each waiting call ends when its token is revoked, here or on another replica, alone or with all of its tenant, when the token expires,
// and when the replica stops. It ends as the API documents, and receives nothing from then on.
func TestEveryCallThatWaitsEndsWithItsToken(t *testing.T) {
	t.Parallel()
	ends := map[string]func(l *live, one waitingTest) (why string){
		"revoked here": func(l *live, one waitingTest) string {
			l.do("POST", "/v1/tokens:revoke?tenantId=acme&workspaceId=prod", l.superAdmin(), one.revoke).want(200)
			return whyRevoked
		},
		"revoked by another replica": func(l *live, one waitingTest) string {
			l.newReplica().do("POST", "/v1/tokens:revoke?tenantId=acme&workspaceId=prod", l.superAdmin(), one.revoke).want(200)
			l.refreshRevocations()
			return whyRevoked
		},
		"revoked with its tenant": func(l *live, _ waitingTest) string {
			l.do("POST", "/v1/tokens:revoke", l.superAdmin(), `{"tenantId":"acme"}`).want(200)
			return whyRevoked
		},
		"expired": func(l *live, _ waitingTest) string {
			l.store.Clock.Advance(model.WorkerTokenTTL + time.Second)
			l.s.api.Waits.Check()
			return whyToken
		},
		"stopping": func(l *live, _ waitingTest) string {
			l.s.stop()
			return whyDraining
		},
	}
	for op, begin := range waitingCalls {
		for name, end := range ends {
			t.Run(op+" "+name, func(t *testing.T) {
				t.Parallel()
				inMemory(t, func(t *testing.T, l *live) {
					one := begin(l)
					until(t, func() bool { return l.s.api.Waits.Len() == 1 }, func() string { return "it does not wait" })
					why := end(l, one)
					if why == whyRevoked {
						l.pass(2 * time.Second)
						l.do("POST", "/v1/tasks", l.controlFor(roleDispatcher, "acme", "prod"), `{"taskId":"t1","queue":"q","type":"x"}`).want(201)
					}
					one.ended(t, why)
					until(t, func() bool { return l.s.api.Waits.Len() == 0 }, func() string { return "it is still counted" })
				})
			})
		}
	}
}

// A call waits only by what ends it with its token, so the table above has all of them.
func TestEveryCallThatWaitsIsInTheTable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	callers := map[string]string{"queues/queues.go": opClaim, "events/stream.go": opEvents, "tasks/tasks.go": opWaitTasks}
	found := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		waits := bytes.Contains(source, []byte(".WhileValid(")) || bytes.Contains(source, []byte("Waits.Add("))
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "httpapi/") {
			continue
		}
		if waits {
			found++
		}
		if waits && waitingCalls[callers[name]] == nil {
			t.Errorf("%s has a call that waits; add it to waitingCalls, and to callers here", name)
		}
		if !waits && bytes.Contains(source, []byte("API.Running")) {
			t.Errorf("%s waits until the replica stops; use WhileValid, so that the call ends with its token too", name)
		}
	}
	if found != len(callers) {
		t.Errorf("%d files have calls that wait, want %d", found, len(callers))
	}
	doc, err := loadDoc()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			text, err := json.Marshal(operation)
			if err != nil {
				t.Fatal(err)
			}
			waits := bytes.Contains(text, []byte("text/event-stream"))
			if body := operation.RequestBody; body != nil {
				waits = waits || body.Value.Content["application/json"].Schema.Value.Properties["waitMs"] != nil
			}
			for _, p := range operation.Parameters {
				waits = waits || p.Value.Name == "waitMs"
			}
			if waits && waitingCalls[operation.OperationID] == nil {
				t.Errorf("%s %s waits and is not among waitingCalls", method, path)
			}
		}
	}
}

// lateRevocation revokes the worker's tokens when its claim has just taken tasks.
type lateRevocation struct {
	apiqueues.Service
	revoke func()
}

func (r *lateRevocation) Claim(ctx context.Context, c queues.ClaimRequest) ([]*model.Envelope, error) {
	tasks, err := r.Service.Claim(ctx, c)
	if len(tasks) > 0 && r.revoke != nil {
		r.revoke()
	}
	return tasks, err
}

// A worker whose tokens are revoked while its claim takes tasks does not get them. The tasks do not run, so they are tried again like
// those of a worker that has gone.
func TestARevokedWorkerGetsNothingThatItsClaimHasTaken(t *testing.T) {
	t.Parallel()
	for _, wait := range []string{"0", "60000"} {
		inMemory(t, func(t *testing.T, l *live) {
			w := l.worker("w1")
			r := &lateRevocation{l.tr.Queues, func() {
				l.do("POST", "/v1/tokens:revoke?tenantId=acme&workspaceId=prod", l.superAdmin(), `{"workerId":"`+w.WorkerID+`"}`).want(200)
			}}
			l.s.queues.Queues = r
			l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"t1","queue":"q","type":"x"}`).want(201)
			l.do("POST", "/v1/queues/q/claim", w.WorkerToken, `{"waitMs":`+wait+`}`).refused(401, v1.CodeUnauthorized)
			r.revoke = nil
			l.pass(5 * time.Minute)
			l.sweep()
			l.pass(time.Minute)
			l.sweep()
			other := l.worker("w2")
			var got v1.ClaimResponse
			l.do("POST", "/v1/queues/q/claim", other.WorkerToken, `{}`).want(200).into(&got)
			if len(got.Tasks) != 1 || got.Tasks[0].TaskID != "t1" || got.Tasks[0].Attempt != 2 {
				t.Errorf("another worker gets %+v, want the second attempt of t1", got.Tasks)
			}
		})
	}
}

// A worker that is forced offline while its claim waits is refused as a new claim would be.
func TestAClaimEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, l *live) {
		w := l.worker("w1")
		got := l.claimInBackground(w)
		until(t, func() bool { return l.s.api.Waits.Len() == 1 }, func() string { return "it does not wait" })
		l.do("POST", "/v1/workers/"+w.WorkerID+"/offline", l.control(roleOperator), `{}`).want(200)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"t1","queue":"q","type":"x"}`).want(201)
		(<-got).refused(410, v1.CodeWorkerOffline)
	})
}
