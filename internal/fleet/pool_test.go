package fleet

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// withPool makes the fleet register workers too, and play few other tasks.
func withPool(o *Options) {
	o.EnrollToken, o.Only = "x", func(name string) bool { return name == "short" }
}

// A short show has two workers killed, and all that they held is done by others.
func TestWorkersOfAGoodServer(t *testing.T) {
	var kills []Kill
	s := show(t, newFake(), 20*time.Second, func(o *Options) {
		withPool(o)
		o.OnKill = func(k Kill) { kills = append(kills, k) }
	})
	if err := s.Check(); err != nil || s.Mishaps+s.Unclear > 0 {
		t.Errorf("%v\n%s", err, s)
	}
	if len(kills) != 2 || s.Killed != 2 || s.Recovered != 80 || kills[1].Held != 40 || kills[1].Recovered != 40 || kills[1].Lag != 0 {
		t.Errorf("%+v of %d, %d recovered", kills, s.Killed, s.Recovered)
	}
	if s.Behaviours[nameClaimed] < 39 || s.Behaviours[nameKilled] != 80 {
		t.Errorf("%v", s.Behaviours)
	}
}

// A worker that takes long to claim lives as long as it beats, also the one that will be killed: it claims 40 jobs in three
// times its timeout.
func TestWorkersBeatWhileTheyClaim(t *testing.T) {
	server := newFake()
	server.pool.slowClaim = 900 * time.Millisecond
	s := show(t, server, 40*time.Second, withPool)
	if err := s.Check(); err != nil || s.Killed != 2 || s.Recovered != 80 || s.Mishaps > 0 {
		t.Errorf("%v\n%s", err, s)
	}
}

// A worker that is late itself is rightly refused. That is reported; another one registers in its place, its tasks are done by
// others, and nothing is called wrong.
func TestALateWorkerRegistersAgain(t *testing.T) {
	server := newFake()
	server.pool.slowBeat = 2 * time.Second
	var mu sync.Mutex
	var mishaps []string
	s := show(t, server, 20*time.Second, func(o *Options) {
		withPool(o)
		o.OnMishap = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			mishaps = append(mishaps, text)
		}
	})
	if s.Wrongs > 0 || s.Evaluated != s.Created || s.Mishaps < 5 || len(mishaps) != s.Mishaps {
		t.Errorf("%d mishaps, %d reported\n%s", s.Mishaps, len(mishaps), s)
	}
	if !strings.Contains(strings.Join(mishaps, "\n"), "may itself have been silent for 2.") {
		t.Errorf("%q", mishaps)
	}
	if err := s.Check(); err != nil && !strings.Contains(err.Error(), "too busy") {
		t.Error(err)
	}
}

// A worker that is to be killed and was late before, though that was not noticed, is no victim: another one is.
func TestALateVictimIsReplaced(t *testing.T) {
	server := newFake()
	server.pool.lateVictim = 2 * time.Second
	s := show(t, server, 40*time.Second, withPool)
	if err := s.Check(); err != nil || s.Killed != 2 || s.Recovered != 80 || s.Mishaps != 1 {
		t.Errorf("%v, %d mishaps\n%s", err, s.Mishaps, s)
	}
}

// Outages and lost answers of all calls cost retries and nothing else.
func TestWorkersRideAnOutageOut(t *testing.T) {
	server := newFake()
	server.pool.partly = 3
	began := time.Time{}
	server.outage = func() bool { // four tenths of a second in five seconds
		if began.IsZero() {
			began = time.Now()
		}
		return time.Since(began)%(5*time.Second) > 4600*time.Millisecond
	}
	s := show(t, server, 20*time.Second, withPool)
	if err := s.Check(); err != nil || s.Retries == 0 || s.Killed != 2 {
		t.Errorf("%v\n%s", err, s)
	}
}

// A claim may have taken tasks although its response was lost, or was 503: a retry under its id gets them.
func TestAClaimIsRetried(t *testing.T) {
	var calls atomic.Int64
	for name, fault := range map[string]func(*fake){
		"lost answers":  func(f *fake) { f.lose = func() bool { return calls.Add(1)%7 == 0 } },
		"503 when done": func(f *fake) { f.pool.unsure = true },
	} {
		t.Run(name, func(t *testing.T) {
			server := newFake()
			fault(server)
			s := show(t, server, 20*time.Second, withPool)
			if err := s.Check(); err != nil || s.Killed != 2 || s.Recovered != 80 {
				t.Errorf("%v\n%s", err, s)
			}
		})
	}
}

// Tasks of a claim whose response was lost wait for their start timeout, and are then done by another worker. No one is
// blamed for that.
func TestAJobWhoseClaimAnswerWasLost(t *testing.T) {
	server := newFake()
	server.pool.drop = true
	s := show(t, server, 20*time.Second, func(o *Options) {
		withPool(o)
		o.KillTasks = 8
	})
	if s.Wrongs > 0 || s.Succeeded != s.Created || s.Mishaps == 0 {
		t.Error(s)
	}
}

// A job that no worker could claim, since claims had no answer, proves nothing, and neither does the check.
func TestJobsThatCouldNotBeClaimed(t *testing.T) {
	server := newFake()
	server.pool.noClaims = true
	s := show(t, server, 5*time.Second, withPool)
	if err := s.Check(); s.Wrongs > 0 || s.Unclear == 0 || err == nil || !strings.Contains(err.Error(), "too busy") {
		t.Errorf("%v\n%s", err, s)
	}
}

// The check must be able to fail for registered workers as well.
func TestFaultsAboutWorkersAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*fakePool)
		want  string
	}{
		"live workers are killed": {func(f *fakePool) { f.killWorker = true },
			"worker  wrong: it was never silent for longer than"},
		"their tasks are taken": {func(f *fakePool) { f.killWorker = true; f.slowClaim = 900 * time.Millisecond },
			"a live worker's task was taken from it: wkr_"},
		"dead workers are missed":                   {func(f *fakePool) { f.mute = true }, "missed: still "},
		"their tasks stay with them":                {func(f *fakePool) { f.keep = true }, "missed: still "},
		"an attempt ends twice":                     {func(f *fakePool) { f.twice = true }, "attempt 1 ended 2 times"},
		"started jobs are taken as if they had not": {func(f *fakePool) { f.hasty = true }, "2 ended attempts in its history, and should be 1"},
		"another worker is held to it": {func(f *fakePool) { f.stranger = true },
			"was that of wkr_stranger, and should be that of wkr_"},
		"the dead are accepted": {func(f *fakePool) { f.acceptDead = true },
			"a beat of the killed worker was answered with 200, and not with 410"},
		"no worker may register": {func(f *fakePool) { f.noEnroll = true }, "registering a worker  wrong: lubdub: POST /v1/workers: 403"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newFake()
			c.fault(&server.pool)
			s := show(t, server, 10*time.Second, withPool)
			var all []string
			for _, v := range s.Wrong {
				all = append(all, v.String())
			}
			if err := s.Check(); err == nil || !strings.Contains(strings.Join(all, "\n"), c.want) {
				t.Errorf("%v: %q is missing in\n%s", err, c.want, strings.Join(all, "\n"))
			}
		})
	}
}
