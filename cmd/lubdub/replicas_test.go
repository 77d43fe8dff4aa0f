package main

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/fleet"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
)

// spread sends each request to the next replica, as a load balancer does, and a request that one does not answer
// to no other: that is for the client to try again.
type spread struct {
	hosts []string
	next  atomic.Int64
	http.RoundTripper
}

func (s *spread) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = s.hosts[int(s.next.Add(1))%len(s.hosts)]
	return s.RoundTripper.RoundTrip(r)
}

// Two replicas of each role on a real Redis, and in the middle of the show one of each is killed without a word.
// Every task must still become what it should, in time, and nothing may be lost or there twice.
func TestReplicasDieAndNothingIsLost(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	fairly(t, replicasDie)
}

// unclear is true of an inconclusive verdict; one that came late by our own clock alone is forgiven, as in failUnlessLate.
func unclear(v fleet.Verdict) bool {
	return v.Unclear != "" && !strings.Contains(v.Unclear, " by its own evidence")
}

// starved is true of a show on a machine that held it up, which may itself have made workers late.
func starved(s fleet.Summary) bool {
	return s.DelayMost > 500*time.Millisecond || s.Delay > s.Elapsed/5
}

func replicasDie(t *testing.T, last bool) (fair bool) {
	redis := redistest.StartServer(t, "--appendonly", "yes")
	role := func(role string) *running {
		return launch(t, withKey, append([]string{"serve", "--redis", redis.URL(), "--roles", role}, anyPort...)...)
	}
	fronts, backs := []*running{role("api"), role("api")}, []*running{role("sweeper"), role("sweeper")}
	transport := &spread{RoundTripper: &http.Transport{MaxIdleConnsPerHost: 64}}
	for _, f := range fronts {
		url, _ := f.urls()
		transport.hosts = append(transport.hosts, strings.TrimPrefix(url, "http://"))
	}
	for _, b := range backs {
		b.urls()
	}
	var killed sync.Once
	none := 0 // inconclusive verdicts
	f := fleet.New(fleet.Options{
		BaseURL: "http://lubdub", Token: adminToken(t), Rate: 12, Timeout: 3 * time.Second,
		Client: &http.Client{Transport: transport, Timeout: 5 * time.Second},
		OnVerdict: func(v fleet.Verdict) {
			if unclear(v) {
				none++
			}
			if v.Zombies > 0 {
				killed.Do(func() { // both roles are at work by now
					fronts[0].signal(syscall.SIGKILL)
					backs[0].signal(syscall.SIGKILL)
				})
			}
		},
	})
	f.Run(t.Context(), 5*time.Second)
	s := f.Summary()
	t.Logf("\n%s", s)
	if s.Retries == 0 || s.Zombies == 0 {
		t.Error("nothing died in the middle of it")
	}
	failUnlessLate(t, s)
	if none > s.Created/4 && starved(s) && !last {
		return false
	}
	if s.Evaluated != s.Created || none > s.Created/4 {
		t.Errorf("%d created, %d judged, %d unclear", s.Created, s.Evaluated, none)
	}
	for _, r := range []*running{fronts[1], backs[1]} {
		r.signal(syscall.SIGTERM)
		if code := r.wait(); code != exitOK {
			t.Errorf("a survivor ended with %d: %s", code, r.errs)
		}
	}
	return true
}

// failUnlessLate reports every wrong verdict that is not merely late. `make demo` limits how late one may be, on a machine that does
// nothing else and with a Redis that responds.
func failUnlessLate(t *testing.T, s fleet.Summary) {
	t.Helper()
	for _, v := range s.Wrong {
		for _, w := range v.Wrong {
			if !strings.Contains(w, " by its own evidence, and may be ") {
				t.Error(v)
			}
		}
	}
}

// Redis is frozen for longer than the timeout of any worker. That is Lubdub's own trouble, and must not expire a live worker; the dead must
// still be found once it is over.
func TestFrozenRedisExpiresNoTask(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	fairly(t, frozenRedis)
}

func frozenRedis(t *testing.T, last bool) (fair bool) {
	redis := redistest.StartServer(t)
	r := launch(t, withKey, append([]string{"serve", "--redis", redis.URL(), "--redis-timeout", "1s"}, anyPort...)...)
	url, _ := r.urls()
	var frozen sync.Once
	none := 0 // inconclusive verdicts
	thawed := make(chan error, 1)
	f := fleet.New(fleet.Options{
		BaseURL: url, Token: adminToken(t), Rate: 12, Patience: 15 * time.Second,
		Timeout: 3 * time.Second,                                                 // so that a busy machine alone makes none late
		Only:    func(name string) bool { return name != "misses its deadline" }, // goes by the wall clock, which an outage does not stop
		OnVerdict: func(v fleet.Verdict) {
			if unclear(v) {
				none++
			}
			if v.Zombies > 0 {
				frozen.Do(func() {
					if err := redis.Freeze(); err != nil {
						t.Error(err)
					}
					time.AfterFunc(4*time.Second, func() { thawed <- redis.Thaw() })
				})
			}
		},
	})
	f.Run(t.Context(), 6*time.Second)
	s := f.Summary()
	t.Logf("\n%s", s)
	select {
	case err := <-thawed:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(long):
		t.Fatal("no worker died, so Redis was not frozen")
	}
	failUnlessLate(t, s)
	if none > 0 && starved(s) && !last {
		return false
	}
	if none > 0 || s.Retries == 0 || s.Evaluated != s.Created {
		t.Errorf("%d of %d judged, %d unclear: workers were failed for an outage", s.Evaluated, s.Created, none)
	}
	return true
}
