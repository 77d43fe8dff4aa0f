package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/testenv"
)

var (
	outageTasks   = flag.Int("outage-tasks", 300, "live tasks in each outage; with more than 1,000 the outages come one after another")
	outageWorkers = flag.Int("outage-workers", 60, "live workers in each outage")
	outageTimeout = flag.Duration("outage-timeout", 4*time.Second, "heartbeat timeout of tasks and workers; each outage lasts twice as long")
)

// outage is one way in which Lubdub itself is the reason that no heartbeat arrives.
type outage struct {
	name      string
	redis     []string // arguments of the server
	begin     func(s *stage)
	end       func(s *stage)
	empty     bool          // the store forgets everything, and with it the dead
	reachable bool          // beats are accepted all the time
	held      time.Duration // for so long may time be held back when it is over
	again     bool          // Redis begins again, which counts as a heartbeat of everyone: the dead gain what they had been silent for

	period   time.Duration // health-check-period, where there is no balancer
	balancer string        // between the clients and the front ends, which judges those by their answers; "": each client tries all
	cluster  bool          // Redis is a Cluster of three nodes
	brief    bool          // of those behind balancers: `make test-all` plays it too
}

var outages = []outage{
	{
		name:  "Redis is frozen",
		begin: func(s *stage) { s.must(s.redis.Freeze()) },
		end:   func(s *stage) { s.must(s.redis.Thaw()) },
	}, {
		name:  "Redis is killed and has its AOF",
		redis: []string{"--appendonly", "yes", "--appendfsync", "everysec"},
		begin: func(s *stage) { s.redis.Kill() },
		end:   func(s *stage) { s.must(s.redis.Restart()) },
		again: true,
	}, {
		name: "Redis is killed and has an old snapshot",
		begin: func(s *stage) {
			c := s.redis.Client()
			defer func() { _ = c.Close() }()
			s.lost = time.Now()
			s.must(c.Save(context.Background()).Err())
			s.add(*outageTasks/20, false) // who came after it is not in it
			s.addWorkers(*outageWorkers/20, false)
			time.Sleep(*outageTimeout / 2) // that much is lost
			s.redis.Kill()
		},
		end:   func(s *stage) { s.must(s.redis.Restart()) },
		again: true,
	}, {
		name:  "Redis is killed and comes back empty",
		begin: func(s *stage) { s.redis.Kill() },
		end:   func(s *stage) { s.must(s.redis.Restart()) },
		empty: true,
	}, {
		name:  "every front end is killed",
		begin: func(s *stage) { kill(s.fronts) },
		end:   func(s *stage) { s.startFronts() },
	}, {
		name:      "every sweeper is killed",
		begin:     func(s *stage) { kill(s.backs) },
		end:       func(s *stage) { s.startBacks() },
		reachable: true,
	}, {
		name:  "Redis is out of memory",
		begin: func(s *stage) { s.config("maxmemory", "1mb") },
		end:   func(s *stage) { s.config("maxmemory", "0") },
	}, {
		name: "Redis is nearly out of memory",
		begin: func(s *stage) {
			c := s.redis.Client()
			defer func() { _ = c.Close() }()
			s.must(nearlyFull(c))
		},
		end:  func(s *stage) { s.config("maxmemory", "0") },
		held: 1200 * time.Millisecond,
	}, {
		name:  "Redis lacks replicas",
		begin: func(s *stage) { s.config("min-replicas-to-write", "1") },
		end:   func(s *stage) { s.config("min-replicas-to-write", "0") },
	},
}

// beginsWithin is how long it may take until all replicas keep time on a Redis that has begun again (IN_PROGRESS_MS in
// lua/lib/primary.lua).
const beginsWithin = 2 * time.Second

// nearlyFull leaves room for small requests and not for large ones.
func nearlyFull(c *redis.Client) error {
	info, err := c.InfoMap(context.Background(), "memory").Result()
	if err != nil {
		return err
	}
	used, err := strconv.Atoi(info["Memory"]["used_memory"])
	if err != nil {
		return err
	}
	return c.ConfigSet(context.Background(), "maxmemory", strconv.Itoa(used+16<<10)).Err()
}

// Whatever prevents beats from being stored for twice the timeout, no worker is declared dead for it that beats as soon as it can;
// one that has been silent since before is found as soon as its timeout allows, the outage not counted.
func TestOutagesExpireNoTask(t *testing.T) {
	testenv.OnlyAll(t)
	if *outageTasks <= 1000 {
		t.Parallel()
	}
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, runtime.NumCPU()) // each has several servers
	for _, o := range slices.Concat(outages, behindBalancers()) {
		if o.balancer != "" && !o.brief && *outageTasks <= 1000 {
			continue
		}
		play := func() { t.Run(strings.ReplaceAll(o.name, " ", "-"), func(t *testing.T) { fairly(t, o.play) }) }
		if *outageTasks > 1000 {
			play()
		} else { // they mostly wait
			running.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				play()
			})
		}
	}
}

// play judges what came of it unless the machine held up clients for so long that, if it did the same to front ends and to Redis, those
// who live were silent for their timeout. What was found too late must have been so in each play: what the code does comes again, and
// what a busy machine does to sweepers seldom.
func (o *outage) play(t *testing.T, last bool) (fair bool) {
	s := o.stage(t)
	unfair := func() bool {
		busy := s.heldUp()
		if last || busy < (s.timeout-s.interval)/3 {
			return false
		}
		t.Logf("the machine held clients up for %v: it is played again", busy)
		return true
	}
	tasks, workers := *outageTasks, *outageWorkers
	if o.balancer != "" { // each beats separately, and a small machine can simulate only so many per second
		tasks, workers = min(tasks, int(750*s.interval.Seconds())), min(workers, int(150*s.interval.Seconds()))
	}
	s.add(tasks, false)
	s.add(max(10, tasks/50), true)
	s.addWorkers(workers, false)
	s.addWorkers(max(5, workers/50), true)
	time.Sleep(s.interval) // every worker has its own phase
	if dead := s.verdicts(); dead > 0 && !last {
		t.Logf("%d died before anything had happened to Lubdub, so the machine is too busy: it is played again", dead)
		return false
	}

	s.fallSilent()
	began := time.Now()
	o.begin(s)
	if !s.lost.IsZero() {
		began = s.lost
	}
	s.turnedAway.Store(0)
	s.acceptedBeats.Store(0)
	time.Sleep(2 * *outageTimeout)
	accepted, away := s.acceptedBeats.Load(), s.turnedAway.Load()
	s.accepted.Store(0)
	o.end(s)
	ended := time.Now()
	if unfair() {
		return false
	}
	if !o.reachable {
		until(t, "a beat is accepted again", func() bool { return s.accepted.Load() > 0 })
		ended = time.UnixMilli(s.accepted.Load())
		if away == 0 {
			t.Error("no beat was turned away: there was no outage")
		}
	}
	time.Sleep(*outageTimeout + time.Second) // for verdicts to fall, wrong ones too
	if tasks, workers := s.count(true); !o.empty {
		until(t, "all the dead are found", func() bool { return s.verdicts() >= tasks+workers })
	}
	t.Logf("%s: %d beats were accepted in it, %d were turned away", o.name, accepted, away)
	came := s.outcome()
	if unfair() { // only now, so that nothing that is judged happened later
		return false
	}
	late := o.check(s, came, began, ended)
	if late != "" && last {
		t.Error(late)
	} else if late != "" {
		t.Logf("%s: it is played again", late)
	}
	return late == ""
}

// outcome is what came of it.
type outcome struct {
	events          []event
	running, online int // tasks and workers
}

func (s *stage) outcome() outcome {
	return outcome{s.events(), s.total("tasks?state=RUNNING"), s.total("workers?status=ONLINE")}
}

// event is one of the events that the sweepers and scripts have written.
type event struct {
	kind, subject string
	shard         int
	text          string
	data          struct{ DetectedAtMs, SilentMs, FromMs, OutageCreditMs int64 }
}

func (s *stage) events() (events []event) {
	s.Helper()
	c := s.store()
	defer func() { _ = c.Close() }()
	for shard := range stageShards {
		entries, err := c.XRange(s.ctx, fmt.Sprintf("lubdub:{%d}:events", shard), "-", "+").Result()
		s.must(err)
		for _, v := range entries {
			e := event{kind: v.Values["type"].(string), shard: shard}
			e.subject, _ = v.Values["subject"].(string)
			if e.text, _ = v.Values["data"].(string); e.text != "" {
				s.must(json.Unmarshal([]byte(e.text), &e.data))
			}
			events = append(events, e)
		}
	}
	return events
}

// verdict reports whether an event declares a member dead. A task.failed comes with each zombie.
func (e *event) verdict() bool {
	return e.kind == "task.zombie" || e.kind == "task.retrying" || e.kind == "worker.offline"
}

func (s *stage) verdicts() (n int) {
	for _, e := range s.events() {
		if e.verdict() {
			n++
		}
	}
	return n
}

// check compares the events of all shards and the final states with what is true, and returns what was found too late.
func (o *outage) check(s *stage, came outcome, began, ended time.Time) (tooLate string) {
	lasted := ended.Sub(began)
	late, behind := -s.timeout, -s.timeout // found how long after timeout and outage, and the same in shard time
	stalls := map[int]time.Duration{}      // by shard: what this machine's other troubles added to the outage
	killed, found, adopted, credited := 0, 0, 0, 0
	for _, e := range came.events {
		s.mu.Lock()
		m := s.members[e.subject]
		s.mu.Unlock()
		switch {
		case e.kind == "system.adopted":
			adopted++
		case e.kind == "system.outage_credited":
			credited++
			if e.data.FromMs > ended.UnixMilli() {
				stalls[e.shard] += time.Duration(e.data.OutageCreditMs) * time.Millisecond
			}
		case (e.verdict() || e.kind == "task.failed") && (m == nil || !m.mortal):
			if killed++; killed <= 10 && m != nil {
				s.Errorf("%s of %s, whose client was held up for %d ms at most: %s", e.kind, e.subject, m.clientDelay.Load(), e.text)
			}
		case e.verdict():
			found++
			due := time.UnixMilli(m.last.Load()).Add(s.timeout + lasted)
			late = max(late, time.UnixMilli(e.data.DetectedAtMs).Sub(due))
			behind = max(behind, time.Duration(e.data.SilentMs)*time.Millisecond-s.timeout)
		}
	}
	if killed > 0 {
		s.Errorf("%d who live were declared dead", killed)
	}
	stalled := time.Duration(0)
	for _, d := range stalls {
		stalled = max(stalled, d)
	}
	s.mu.Lock()
	refused := s.refused
	s.mu.Unlock()
	if len(refused) > 0 {
		s.Errorf("%d beats of live ones were finally refused, such as %s", len(refused), refused[0])
	}
	tasks, workers := s.count(false)
	deadTasks, deadWorkers := s.count(true)
	if came.running != tasks || came.online != workers {
		s.Errorf("%d tasks are RUNNING and %d workers ONLINE, and %d and %d are alive", came.running, came.online, tasks, workers)
	}
	if want := deadTasks + deadWorkers; found != want && !o.empty {
		s.Errorf("%d of %d dead were found", found, want)
	}
	if o.reachable {
		behind -= lasted // shard time ran on
	}
	// What the machine kept the clients waiting for it kept the sweepers waiting for, too.
	busy := s.heldUp()
	allowed := busy + 500*time.Millisecond
	if o.again {
		allowed += s.interval + beginsWithin
	}
	if behind > allowed || late > allowed+o.held+stalled {
		tooLate = fmt.Sprintf("a dead one was found %v later than his timeout and the outage of %v, %v in shard time", late, lasted, behind)
	}
	if o.empty != (adopted >= tasks+workers) || !s.lost.IsZero() && adopted == 0 {
		s.Errorf("%d of %d were adopted", adopted, tasks+workers)
	}
	if credited == 0 && !o.reachable && !o.empty {
		s.Error("the outage was not reported")
	}
	s.Logf("| %s | %.1f s | %d + %d | %d | %d | %d of %d | %d ms | %d ms | %d ms |", o.name, lasted.Seconds(), tasks, workers, killed, adopted,
		found, deadTasks+deadWorkers, late.Milliseconds(), stalled.Milliseconds(), busy.Milliseconds())
	return tooLate
}

// total is how many a list counts.
func (s *stage) total(path string) int {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://lubdub/v1/"+path, nil)
	s.must(err)
	req.Header.Set("Authorization", "Bearer "+s.admin)
	req.URL.RawQuery += "&tenantId=default&workspaceId=default"
	res, err := s.client.Do(req)
	s.must(err)
	defer res.Body.Close()
	var page struct{ TotalCount int }
	s.must(json.NewDecoder(res.Body).Decode(&page))
	return page.TotalCount
}
