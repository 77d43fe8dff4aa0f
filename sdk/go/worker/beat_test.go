//go:build go1.25

package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// A worker that the server does not know any more registers again; tasks taken from it are stopped, and run again.
func TestComingBack(t *testing.T) {
	for name, lose := range map[string]func(*workertest.Server, string){
		"offline": (*workertest.Server).Offline, "forgotten": (*workertest.Server).Forget,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newSite(t)
				var begun, lost atomic.Int32
				s.run(func(ctx context.Context, _ *worker.Task) (any, error) {
					begun.Add(1)
					select {
					case <-ctx.Done():
						lost.Add(1)
						return nil, ctx.Err()
					case <-time.After(time.Minute):
						return 1, nil
					}
				})
				s.enqueue()
				synctest.Wait()
				old := s.worker.WorkerID()
				lose(s.server, old)
				time.Sleep(25 * time.Second)
				if s.worker.WorkerID() == old {
					t.Error("it has not registered again")
				}
				if lost.Load() != 1 {
					t.Errorf("%d handlers were stopped", lost.Load())
				}
				if name == "offline" && begun.Load() != 2 {
					t.Errorf("%d were begun", begun.Load())
				}
				time.Sleep(2 * time.Minute)
				if err := s.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A lost answer counts nothing twice, and a server that is away loses nothing.
func TestCountsAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		s.run(func(context.Context, *worker.Task) (any, error) { return 1, nil })
		losing := 0
		s.server.LoseAnswers(func(r *http.Request) error {
			if losing++; losing%3 != 0 && !strings.HasSuffix(r.URL.Path, "/drain") {
				return io.ErrUnexpectedEOF
			}
			return nil
		})
		for i := range 50 {
			s.enqueue()
			time.Sleep(2 * time.Second)
			if i == 20 {
				s.server.Unavailable(2 * time.Second)
				time.Sleep(3 * time.Minute)
				s.server.Up()
			}
		}
		s.server.LoseAnswers(nil)
		time.Sleep(time.Minute)
		done := int64(0)
		for _, w := range s.server.Workers() {
			done += w.Completed
		}
		if done != 50 || len(s.server.Workers()) != 1 {
			t.Errorf("%d were counted by %d workers", done, len(s.server.Workers()))
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// What is lost is in no beat any more, whatever its handler does: a beat that names it would have the server take it for held.
func TestWhatIsLostIsNotListed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		finish := make(chan struct{})
		s.run(func(context.Context, *worker.Task) (any, error) { <-finish; return 1, nil })
		id := s.enqueue()
		time.Sleep(15 * time.Second)
		s.server.End(id, "HEARTBEAT_TIMEOUT")
		before := len(s.paths("/heartbeat"))
		time.Sleep(time.Minute)
		beats := s.paths("/heartbeat")[before:]
		for i, r := range beats {
			if named := strings.Contains(string(r.Body), id); named != (i == 0) {
				t.Errorf("beat %d after its end: %s", i+1, r.Body)
			}
		}
		if len(beats) < 4 || s.worker.ActiveCount() != 1 {
			t.Errorf("%d beats; %d at work", len(beats), s.worker.ActiveCount())
		}
		close(finish)
		synctest.Wait()
		if n := len(s.paths("/completed")); n != 0 {
			t.Errorf("%d completions", n)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A completion waits for the beat that names its attempt, and no beat after it does.
func TestACompletionWaitsForTheBeatUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		server := workertest.New(t, workertest.MachineTime())
		slow := carrier(func(r *http.Request) (*http.Response, error) {
			res, err := server.RoundTrip(r)
			if strings.HasSuffix(r.URL.Path, "/heartbeat") {
				time.Sleep(4 * time.Second) // the answer takes its time
			}
			return res, err
		})
		c, err := client.New(server.URL(), append(server.Options(), client.Transport(slow))...)
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(c, "default")
		if err != nil {
			t.Fatal(err)
		}
		s := &site{T: t, server: server, worker: w, ended: make(chan error, 1)}
		finish := make(chan struct{})
		s.run(func(context.Context, *worker.Task) (any, error) { <-finish; return 1, nil })
		id := s.enqueue()
		for len(s.paths("/heartbeat")) < 2 {
			time.Sleep(time.Second)
		}
		answered := s.paths("/heartbeat")[1].At.Add(4 * time.Second)
		close(finish)
		time.Sleep(time.Minute)
		if got := s.server.Task(id); got.State != v1.Succeeded {
			t.Fatalf("%+v", got)
		}
		completed := s.paths("/completed")[0].At
		if !completed.Equal(answered) {
			t.Errorf("the completion left at %v, the beat's answer came at %v", completed, answered)
		}
		for _, r := range s.paths("/heartbeat") {
			if r.At.After(completed) && strings.Contains(string(r.Body), id) {
				t.Errorf("a beat at %v names the attempt", r.At)
			}
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
}

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// A task that ends in an outage is not lost, however the worker's interval and the server's Retry-After compare: its completion may come
// again long after the first beats have. No beat names it meanwhile.
func TestATaskThatEndsInAnOutageIsNotLost(t *testing.T) {
	outages := map[string]func(*workertest.Server){
		"Retry-After":    func(s *workertest.Server) { s.Unavailable(2 * time.Second) },
		"no Retry-After": func(s *workertest.Server) { s.Unavailable(0) },
		"no answer":      (*workertest.Server).Down,
	}
	for name, fail := range outages {
		for _, interval := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 7 * time.Second} {
			t.Run(fmt.Sprintf("%s/%v", name, interval), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					beats := workertest.WorkerBeats(interval, max(4*time.Second, 3*interval))
					s := newSiteOf(t, workertest.New(t, workertest.MachineTime(), beats), worker.TaskTimeout(0))
					s.run(forPayload)
					held := s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Payload: json.RawMessage("7200")})
					for range 4 {
						id := s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Payload: json.RawMessage("10")})
						time.Sleep(5 * time.Second)
						fail(s.server)
						time.Sleep(20 * time.Second)
						s.server.Up()
						time.Sleep(20 * time.Second)
						if got := s.server.Task(id); got.State != v1.Succeeded || got.Attempt != 1 || got.Lost != 0 {
							t.Errorf("%+v", got)
						}
						s.noBeatAfterCompletion(id)
					}
					if got := s.server.Task(held); got.State != v1.Running || got.Lost != 0 {
						t.Errorf("its neighbour: %+v", got)
					}
					s.worker.Kill()
					<-s.ended
				})
			})
		}
	}
}

// While a part of the server accepts no completions and the rest works, uncompleted tasks are not lost, nor is any other task that the
// worker holds, with its own timeout or without.
func TestACompletionThatIsNotTakenForLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSiteOf(t, workertest.New(t, workertest.MachineTime(), workertest.WorkerBeats(time.Second, 4*time.Second)), worker.TaskTimeout(0))
		s.run(forPayload)
		interval, timeout := int64(1000), int64(4000)
		separate := s.server.Enqueue(v1.CreateTaskRequest{
			Type: "job", Payload: json.RawMessage("600"), HeartbeatIntervalMs: &interval, HeartbeatTimeoutMs: &timeout,
		})
		along := s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Payload: json.RawMessage("600")})
		done := s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Payload: json.RawMessage("10")})
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			return 503, v1.Error{Error: v1.CodeStoreUnavailable}, strings.HasSuffix(r.URL.Path, "/completed")
		})
		time.Sleep(5 * time.Minute)
		if n := len(s.paths("/completed")); n < 100 {
			t.Errorf("the completion was sent %d times", n)
		}
		if got := s.server.Task(separate); got.State != v1.Running || got.Lost != 0 || got.Beats < 250 {
			t.Errorf("the one that beats separately: %+v", got)
		}
		s.server.Cancel(separate, "enough")
		time.Sleep(2 * time.Second)
		s.server.Intercept(nil)
		time.Sleep(5 * time.Second)
		for id, want := range map[string]v1.State{separate: v1.Cancelled, along: v1.Running, done: v1.Succeeded} {
			if got := s.server.Task(id); got.State != want || got.Lost != 0 {
				t.Errorf("%+v", got)
			}
			s.noBeatAfterCompletion(id)
		}
		if beats := s.paths("/heartbeat"); !strings.Contains(string(beats[len(beats)-1].Body), along) {
			t.Errorf("the inventories did not come back: %s", beats[len(beats)-1].Body)
		}
		s.worker.Kill()
		<-s.ended
	})
}

// A worker that has registered again sends inventories, though a completion waits: the new registration does not hold that task.
func TestANewRegistrationListsAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t, worker.TaskTimeout(0))
		s.run(forPayload)
		s.server.Enqueue(v1.CreateTaskRequest{Type: "job", Payload: json.RawMessage("10")})
		s.server.Intercept(func(r *http.Request, _ []byte) (int, any, bool) {
			return 503, v1.Error{Error: v1.CodeStoreUnavailable}, strings.HasSuffix(r.URL.Path, "/completed")
		})
		time.Sleep(time.Minute)
		s.server.Forget(s.worker.WorkerID())
		time.Sleep(20 * time.Second)
		before := len(s.paths("/heartbeat"))
		time.Sleep(time.Minute)
		for i, r := range s.paths("/heartbeat")[before:] {
			if !strings.Contains(string(r.Body), `"tasks":[`) {
				t.Errorf("no inventory: beat %d of the new worker: %s", i+1, r.Body)
			}
		}
		s.worker.Kill()
		<-s.ended
	})
}

// forPayload is a handler that works for as many seconds as the payload has.
func forPayload(ctx context.Context, task *worker.Task) (any, error) {
	var seconds int
	if err := task.Payload(&seconds); err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
		return 1, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noBeatAfterCompletion holds that none names a task whose completion was sent before.
func (s *site) noBeatAfterCompletion(id string) {
	s.Helper()
	completed := false
	for _, r := range s.server.Requests() {
		completed = completed || r.Path == "/v1/tasks/"+id+"/completed"
		beats := strings.HasSuffix(r.Path, "/heartbeat") || strings.HasSuffix(r.Path, "/heartbeats")
		if completed && beats && strings.Contains(r.Path+string(r.Body), `"`+id+`"`) {
			s.Errorf("after its completion %s %s", r.Path, r.Body)
		}
	}
}
