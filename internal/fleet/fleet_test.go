package fleet

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/bubble"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// half a minute of the bubble's time, less the last task of it.
const halfMinute = 29900 * time.Millisecond

// show plays a fleet against a fake.
func show(t *testing.T, server *fake, create time.Duration, adjust func(*Options)) Summary {
	t.Helper()
	var s Summary
	bubble.Run(t, func(t *testing.T) {
		o := Options{BaseURL: "http://lubdub", Token: "x", Client: &http.Client{Transport: server}, Seed: 7, Rate: 4}
		if adjust != nil {
			adjust(&o)
		}
		f := New(o)
		f.delays.threads = nil // the bubble's time is not that of the machine
		f.Run(t.Context(), create)
		s = f.Summary()
		server.stop() // a bubble ends when its timers do
	})
	return s
}

func TestGoodServerPasses(t *testing.T) {
	s := show(t, newFake(), halfMinute, nil)
	if err := s.Check(); err != nil {
		t.Errorf("%v\n%v", err, s.Wrong)
	}
	if s.Created != 120 || s.Evaluated != 120 || s.Live != 0 || s.Unclear != 0 || s.Retries != 0 {
		t.Errorf("%+v", s)
	}
	for _, b := range behaviours {
		if s.Behaviours[b.name] < 4*b.cards {
			t.Errorf("%s was played %d times in more than four decks", b.name, s.Behaviours[b.name])
		}
	}
	for _, reason := range []string{"WORKER_REPORTED", "HEARTBEAT_TIMEOUT", "CANCEL_TIMEOUT", "START_TIMEOUT", "RUN_TIMEOUT",
		"DEADLINE_EXCEEDED"} {
		if s.Reasons[reason] == 0 {
			t.Errorf("no task failed as %s", reason)
		}
	}
}

// The check must be able to fail: each kind of wrong verdict is found, and called by its name.
func TestFaultsAreFound(t *testing.T) {
	only := func(names ...string) func(*Options) {
		return func(o *Options) {
			o.Only = func(name string) bool {
				for _, n := range names {
					if n == name {
						return true
					}
				}
				return false
			}
		}
	}
	for _, c := range []struct {
		name   string
		fault  func(*fake)
		adjust func(*Options)
		want   string
	}{
		{"live tasks are failed", func(f *fake) { f.killer = true }, only("steady", "slow beats"), "a live task was failed"},
		{"dead ones are missed", func(f *fake) { f.blind = true }, only("crashes"), "missed: still RUNNING"},
		{"verdicts are late", func(f *fake) { f.late = 300 * time.Millisecond }, only("crashes"),
			"HEARTBEAT_TIMEOUT came 300ms late, 300ms by its own evidence, and may be 250ms at most"},
		{"late, and the evidence denies it", func(f *fake) { f.late = 300 * time.Millisecond; f.hideLate = true }, only("ignores cancel"),
			"CANCEL_TIMEOUT came 300ms late"},
		{"late start timeout", func(f *fake) { f.late = 300 * time.Millisecond }, only("never starts"), "START_TIMEOUT came 300ms late"},
		{"late run timeout", func(f *fake) { f.late = 300 * time.Millisecond }, only("hangs"), "RUN_TIMEOUT came 300ms late"},
		{"late deadline", func(f *fake) { f.late = 300 * time.Millisecond }, only("misses its deadline"), "DEADLINE_EXCEEDED came"},
		{"verdicts are early", func(f *fake) { f.early = 100 * time.Millisecond; f.hideLate = true }, only("crashes"),
			"HEARTBEAT_TIMEOUT came 100ms early"},
		{"wrong reason", func(f *fake) {
			f.edit = func(t *v1.Task) {
				if t.Reason != nil {
					*t.Reason = "RUN_TIMEOUT"
				}
			}
		}, only("crashes"), "FAILED RUN_TIMEOUT, and should be FAILED HEARTBEAT_TIMEOUT"},
		{"wrong state", func(f *fake) {
			f.edit = func(t *v1.Task) {
				if t.State == v1.Succeeded {
					t.State = v1.Cancelled
				}
			}
		}, only("short"), "CANCELLED, and should be SUCCEEDED"},
		{"wrong category", func(f *fake) { f.edit = func(t *v1.Task) { t.Error = []byte(`{"category":"OTHER"}`) } }, only("fails"),
			`error category "OTHER"`},
		{"no evidence", func(f *fake) { f.noEvidence = true }, only("crashes"), "has no evidence"},
		{"history is lost", func(f *fake) { f.edit = func(t *v1.Task) { t.History = nil } }, only("crashes, tried again"),
			"0 ended attempts in its history, and should be 2"},
		{"finished tasks are lost", func(f *fake) { f.forget = true }, only("steady"), "the task is gone"},
		{"cancels are not delivered", func(f *fake) { f.noCancel = true }, only("honours cancel"),
			"the beat after the cancel did not request a stop"},
		{"deadlines to come are refused", func(f *fake) { f.noDeadlines = true }, only("misses its deadline"), "400"},
		{"late ones are accepted", func(f *fake) { f.revive = true }, only("comes back too late"),
			"a beat after the verdict was answered with 200, and not with 410"},
		{"tasks are doubled", func(f *fake) { f.double = true }, only("short"), "tasks, and should count 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := newFake()
			c.fault(server)
			s := show(t, server, 6*time.Second, c.adjust)
			if s.Check() == nil {
				t.Fatalf("nothing was found: %+v", s)
			}
			var all []string
			for _, v := range s.Wrong {
				all = append(all, v.String())
			}
			if !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("%q is missing in\n%s", c.want, strings.Join(all, "\n"))
			}
		})
	}
}

// A machine that is too slow proves nothing, and the check must not pretend that it does.
func TestSlowMachineIsUnclear(t *testing.T) {
	s := show(t, func() *fake { f := newFake(); f.slow = 1900 * time.Millisecond; return f }(), halfMinute, func(o *Options) {
		o.Only = func(name string) bool { return name == "steady" }
	})
	if s.Unclear == 0 || s.Wrongs != 0 {
		t.Errorf("unclear %d, wrong %d: %v", s.Unclear, s.Wrongs, s.Wrong)
	}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "too busy") {
		t.Errorf("%v", err)
	}
}

// Short outages and lost answers cost retries and nothing else: a creation that is repeated leaves no second task.
func TestOutageIsRiddenOut(t *testing.T) {
	var calls atomic.Int64
	seventh := func() bool { return calls.Add(1)%7 == 0 }
	for name, fault := range map[string]func(*fake){
		"refusals":     func(f *fake) { f.outage = seventh },
		"lost answers": func(f *fake) { f.lose = seventh },
	} {
		t.Run(name, func(t *testing.T) {
			server := newFake()
			fault(server)
			s := show(t, server, halfMinute, nil)
			if err := s.Check(); err != nil || s.Retries == 0 {
				t.Errorf("%v, %d retries\n%v", err, s.Retries, s.Wrong)
			}
		})
	}
}

// A task whose creation had no answer until its deadline had passed is refused, rightly: that proves nothing.
func TestADeadlineThatPassedBeforeItsTaskWasMade(t *testing.T) {
	server := newFake()
	var since time.Time // of the bubble
	server.outage = func() bool {
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) < 3*time.Second
	}
	s := show(t, server, 5*time.Second, func(o *Options) {
		o.Only = func(name string) bool { return name == "misses its deadline" }
	})
	if s.Wrongs > 0 || s.Mishaps == 0 || s.Evaluated == 0 {
		t.Errorf("%d mishaps, %d judged\n%v", s.Mishaps, s.Evaluated, s.Wrong)
	}
}

// A refusal by the server is reported and counted. It does not end the show, which would take the server with it.
func TestARefusedTokenIsReported(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		began := time.Now()
		f := New(Options{BaseURL: "http://lubdub", Client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 401, Body: http.NoBody}, nil
		})}})
		f.Run(t.Context(), time.Minute)
		s := f.Summary()
		const want = "creating a task  wrong: lubdub: POST /v1/tasks: 401 : Unauthorized"
		if time.Since(began) < time.Minute || s.Wrongs == 0 || s.Wrong[0].String() != want || s.Check() == nil {
			t.Errorf("after %v: %s", time.Since(began), s)
		}
	})
}

func TestStopsWithContext(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		server := newFake()
		server.blind = true
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		f := New(Options{BaseURL: "http://lubdub", Client: &http.Client{Transport: server}, Only: func(n string) bool { return n == "crashes" }})
		began := time.Now()
		f.Run(ctx, 0)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestSameSeedSameShow(t *testing.T) {
	var names [2][]string
	for i := range names {
		show(t, newFake(), halfMinute, func(o *Options) {
			o.OnVerdict = func(v Verdict) { names[i] = append(names[i], v.TaskID+v.Behaviour) }
		})
	}
	slices.Sort(names[0]) // those that end in the same instant are judged in any order
	slices.Sort(names[1])
	if len(names[0]) != 120 || strings.Join(names[0], " ") != strings.Join(names[1], " ") {
		t.Error("two shows of one seed differ")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {errors.New("connection refused"), true}, {errAnswer, false}, {context.Canceled, false}, {context.DeadlineExceeded, true},
		{&client.Error{Status: 503}, true}, {&client.Error{Status: 429}, true},
		{&client.Error{Status: 409}, false}, {&client.Error{Status: 500}, false},
	} {
		if again(c.err) != c.want {
			t.Errorf("%v: %v", c.err, again(c.err))
		}
	}
}
