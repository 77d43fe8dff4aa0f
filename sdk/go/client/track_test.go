//go:build go1.25

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// The first beat goes at once, the others by the interval; what is tracked together is beaten for together.
func TestBeatsGoTogether(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		began := time.Now()
		_, _, a := s.push()
		synctest.Wait()
		if got := s.beats(); len(got) != 1 || !got[0].At.Equal(began) || got[0].Header.Get("Authorization") != "" {
			t.Fatalf("the first beat: %v", got)
		}
		time.Sleep(2 * time.Second)
		_, _, b := s.push()
		synctest.Wait()
		if got := s.beats(); len(got) != 2 || len(items(t, got[1])) != 1 {
			t.Fatalf("the other one's first beat: %v", got)
		}
		time.Sleep(60 * time.Second)
		ticks := s.beats()[2:]
		if len(ticks) < 5 || len(ticks) > 7 {
			t.Errorf("%d ticks of 10 s within a minute", len(ticks))
		}
		for i, r := range ticks {
			if n := len(items(t, r)); n != 2 {
				t.Errorf("tick %d has %d beats", i, n)
			}
			if i > 0 && (r.At.Sub(ticks[i-1].At) > 10*time.Second || r.At.Sub(ticks[i-1].At) < 9*time.Second) {
				t.Errorf("tick %d comes %v after the one before", i, r.At.Sub(ticks[i-1].At))
			}
		}
		for _, a := range []*client.Attempt{a, b} {
			if answer, err := a.Done(map[string]int{"rows": 42}); err != nil || answer.FinalState != v1.Succeeded {
				t.Errorf("%+v, %v", answer, err)
			}
		}
		n := len(s.beats())
		time.Sleep(time.Minute)
		if len(s.beats()) != n {
			t.Error("beats continue after the end")
		}
	})
}

// The end of an attempt ends the context, with its reason, and nothing more is sent about it.
func TestTheContextHasTheCauseOfItsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*workertest.Server, string)
		want error
	}{
		"superseded": {func(s *workertest.Server, id string) { s.Supersede(id) }, client.Superseded{By: 2}},
		"expired":    {func(s *workertest.Server, id string) { s.End(id, "HEARTBEAT_TIMEOUT") }, client.Expired{Reason: "HEARTBEAT_TIMEOUT"}},
		"deadline":   {func(s *workertest.Server, id string) { s.End(id, "DEADLINE_EXCEEDED") }, client.DeadlineExceeded{}},
		"finished":   {func(s *workertest.Server, id string) { s.End(id, "") }, client.Lost{State: v1.Failed}},
		"closed":     {nil, client.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t)
				causes := make(chan error, 2)
				e := s.server.Push(task())
				ctx, a := s.track(e, client.OnEnd(func(cause error) { causes <- cause }))
				synctest.Wait()
				if test.end != nil {
					test.end(s.server, e.TaskID)
				} else {
					s.client.Close()
				}
				<-ctx.Done()
				wantCause(t, ctx, test.want)
				if cause := <-causes; cause != context.Cause(ctx) {
					t.Errorf("notified of %v", cause)
				}
				n := len(s.server.Requests())
				if err := a.Progress(50, ""); !errors.Is(err, test.want) {
					t.Errorf("progress after the end: %v", err)
				}
				if _, err := a.Done(nil); !errors.Is(err, test.want) {
					t.Errorf("a completion after the end: %v", err)
				}
				time.Sleep(time.Minute)
				if len(s.server.Requests()) != n {
					t.Errorf("%d requests after the end", len(s.server.Requests())-n)
				}
			})
		})
	}
}

func TestACancelIsReceived(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		e, ctx, a := s.push()
		synctest.Wait()
		s.server.Cancel(e.TaskID, "user_requested")
		<-ctx.Done()
		wantCause(t, ctx, client.Cancelled{Reason: "user_requested"})
		n := len(s.beats())
		time.Sleep(25 * time.Second)
		if len(s.beats()) <= n {
			t.Error("no beats go while the work cleans up")
		}
		if _, err := a.Fail(&client.StoppedError{Phase: "processing", Partial: map[string]int{"rows": 5}}); err != nil {
			t.Fatal(err)
		}
		if got := s.server.Task(e.TaskID); got.State != v1.Cancelled || got.Phase != "processing" || string(got.Partial) != `{"rows":5}` {
			t.Errorf("%+v", got)
		}

		e = s.server.Push(task())
		s.server.Cancel(e.TaskID, "before it began")
		ctx, a = s.track(e)
		wantCause(t, ctx, client.Cancelled{Reason: "before it began"})
		if _, err := a.Fail(ctx.Err()); err != nil || s.server.Task(e.TaskID).State != v1.Cancelled {
			t.Errorf("%+v, %v", s.server.Task(e.TaskID), err)
		}
	})
}

// While no server answers, patient work continues and strict work ends with its lease, which runs from when the last accepted beat left.
func TestLeases(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		patient, strict := s.server.Push(task()), s.server.Push(task())
		on, goesOn := s.track(patient)
		over, ends := s.track(strict, client.LeaseOf(client.Strict))
		time.Sleep(25 * time.Second)
		var last time.Time
		for _, r := range s.beats() {
			last = r.At
		}
		s.server.Down()
		<-over.Done()
		if ended, ok := causeIs[client.LeaseEnded](over); !ok || time.Since(last) != 30*time.Second || ended.Silent != 30*time.Second {
			t.Errorf("strict work ended %v after the last beat that was accepted: %v", time.Since(last), context.Cause(over))
		}
		if _, err := ends.Done(nil); !errors.As(err, new(client.LeaseEnded)) {
			t.Errorf("a completion after the lease: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if on.Err() != nil {
			t.Fatalf("patient work was stopped: %v", context.Cause(on))
		}
		s.server.Up()
		time.Sleep(20 * time.Second)
		if answer, err := goesOn.Done(nil); err != nil || answer.FinalState != v1.Succeeded {
			t.Errorf("%v, %v", answer, err)
		}
		if s.server.Task(patient.TaskID).Lost != 0 {
			t.Error("it was lost meanwhile")
		}
	})
}

// A server that hangs holds up no lease.
func TestAServerThatHangsHoldsUpNoLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		hangs := make(chan struct{})
		s := workertest.New(t, workertest.MachineTime())
		c := newClient(t, s.URL(), append(s.Options(), client.DefaultLease(client.Strict),
			client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
				select {
				case <-hangs:
					<-r.Context().Done()
					return nil, r.Context().Err()
				default:
					return s.RoundTrip(r)
				}
			})))...)
		ctx, a, err := c.Track(t.Context(), s.Push(task()))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		close(hangs)
		<-ctx.Done()
		if _, ok := causeIs[client.LeaseEnded](ctx); !ok || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(began), context.Cause(ctx))
		}
		a.Abandon()
	})
}

// After a machine has slept, strict work is stopped before it does anything else.
func TestSleepEndsStrictLeases(t *testing.T) {
	s := workertest.New(t)
	c := newClient(t, s.URL(), append(s.Options(), client.DefaultLease(client.Strict))...)
	e := s.Push(task())
	ctx, a, err := c.Track(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	s.Until("it has beaten", func() bool { return s.Task(e.TaskID).Beats > 0 })
	s.Jump(time.Minute)
	if err := a.Progress(50, "awake again"); !errors.As(err, new(client.LeaseEnded)) || ctx.Err() == nil {
		t.Errorf("the first thing after the sleep: %v", err)
	}
	a.Abandon()
}

// A completion is repeated with the same body until it is answered, and no beat leaves after it.
func TestACompletionIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		e, ctx, a := s.push()
		time.Sleep(5 * time.Second)
		lost := 0
		s.server.LoseAnswers(func(r *http.Request) error {
			if lost++; strings.HasSuffix(r.URL.Path, "/completed") && lost <= 3 {
				return io.ErrUnexpectedEOF
			}
			return nil
		})
		if err := a.Progress(99.5, "nearly"); err != nil {
			t.Fatal(err)
		}
		answer, err := a.Done(json.RawMessage(`{"rows": 1}`))
		if err != nil || answer.FinalState != v1.Succeeded {
			t.Fatalf("%v, %v", answer, err)
		}
		wantCause(t, ctx, client.ErrEnded)
		if got := s.server.Task(e.TaskID); got.ProgressPct != 99.5 || got.Message != "nearly" {
			t.Errorf("the last progress did not arrive: %+v", got)
		}
		var bodies []string
		for _, r := range s.server.Requests() {
			if strings.HasSuffix(r.Path, "/completed") {
				bodies = append(bodies, string(r.Body))
			} else if len(bodies) > 0 {
				t.Errorf("%s after the completion", r.Path)
			}
		}
		if len(bodies) < 2 || bodies[0] != bodies[len(bodies)-1] {
			t.Errorf("completions: %q", bodies)
		}
		if _, err := a.Fail(errors.New("x")); !errors.Is(err, client.ErrEnded) {
			t.Errorf("Fail after Done: %v", err)
		}
	})
}

// A completion that nothing can open any more is given up.
func TestACompletionEndsWithItsToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		_, _, a := s.push()
		s.server.Down()
		began := time.Now()
		if _, err := a.Done(nil); err == nil || !strings.Contains(err.Error(), "its token has expired") {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > time.Hour || took < 59*time.Minute {
			t.Errorf("given up after %v", took)
		}
	})
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}

// A new token takes the place of the old one, for the completion too.
func TestARenewedTokenIsUsed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		used := map[string]string{}
		c := newClient(t, "https://lubdub.example", client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			if r.URL.Path == "/v1/heartbeats" {
				var many v1.HeartbeatsRequest
				_ = json.Unmarshal(body, &many)
				used[r.URL.Path] += many.Heartbeats[0].TaskToken + " "
				return reply(200, `{"results":[{"taskId":"t","status":200,"acknowledged":true,"shouldCancel":false,"serverTime":"2026-01-01T00:00:00.000Z",
					"nextHeartbeatMs":5000,"taskToken":"new","tokenExpiresAt":"2026-01-01T01:00:00.000Z"}],"serverTime":"2026-01-01T00:00:00.000Z"}`), nil
			}
			used[r.URL.Path] += r.Header.Get("Authorization") + " "
			return reply(200, `{"acknowledged":true,"finalState":"SUCCEEDED"}`), nil
		})))
		_, a, err := c.Track(t.Context(), &v1.TaskEnvelope{TaskID: "t", Attempt: 1, TaskToken: "old", HeartbeatIntervalMs: 10000})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Second) // by the interval of the newest answer six beats have gone, or seven
		if _, err := a.Done(nil); err != nil {
			t.Fatal(err)
		}
		if used["/v1/tasks/t/started"] != "Bearer old " || !strings.HasPrefix(used["/v1/heartbeats"], "old new ") ||
			strings.Count(used["/v1/heartbeats"], "new") < 5 || used["/v1/tasks/t/completed"] != "Bearer new " {
			t.Errorf("%q", used)
		}
	})
}

func TestRunCompletesWhateverHappens(t *testing.T) {
	for name, test := range map[string]struct {
		work     func(context.Context, *client.Attempt) (any, error)
		state    v1.State
		category v1.ErrorCategory
		stack    string
	}{
		"an output": {func(context.Context, *client.Attempt) (any, error) { return 7, nil }, v1.Succeeded, "", ""},
		"an error":  {func(context.Context, *client.Attempt) (any, error) { return nil, io.EOF }, v1.Failed, v1.CategoryUserCode, ""},
		"a category": {func(context.Context, *client.Attempt) (any, error) {
			return nil, client.Categorize(v1.CategoryDataQuality, io.EOF)
		}, v1.Failed, v1.CategoryDataQuality, ""},
		"a panic": {func(context.Context, *client.Attempt) (any, error) { panicsHere(); return nil, nil }, v1.Failed, v1.CategoryUserCode,
			"panicsHere"},
		"no JSON": {func(context.Context, *client.Attempt) (any, error) { return func() {}, nil }, v1.Failed, v1.CategoryUserCode, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t)
				e := s.server.Push(task())
				if _, err := s.client.Run(t.Context(), e, test.work); err != nil {
					t.Fatal(err)
				}
				got := s.server.Task(e.TaskID)
				if got.State != test.state || (got.Error != nil) != (test.category != "") {
					t.Fatalf("%+v", got)
				}
				if got.Error != nil && (got.Error.Category != test.category || !strings.Contains(got.Error.StackTrace, test.stack) ||
					len(got.Error.StackTrace) > 16<<10) {
					t.Errorf("%+v", got.Error)
				}
			})
		})
	}
}

func panicsHere() { panic("at the disco") }

// A completion waits for the beat that names its attempt.
func TestACompletionWaitsForTheBeatUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		server := workertest.New(t, workertest.MachineTime())
		c := newClient(t, server.URL(), append(server.Options(), client.Transport(carrier(func(r *http.Request) (*http.Response, error) {
			res, err := server.RoundTrip(r)
			if r.URL.Path == "/v1/heartbeats" {
				time.Sleep(4 * time.Second) // the answer takes its time
			}
			return res, err
		})))...)
		s := &site{t, server, c}
		_, _, a := s.push()
		synctest.Wait()
		began := time.Now()
		if _, err := a.Done(nil); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 4*time.Second || len(s.beats()) != 1 {
			t.Errorf("it waited %v, and %d beats went", waited, len(s.beats()))
		}
	})
}
