package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var (
	otherCommit = flag.String("other-commit", "1c162f7d8a5b2a63838690afc26c0f9ab7862837",
		"what runs together with this tree in TestTwoReleasesRunConcurrently")
	upgradeRolls = flag.Int("upgrade-rolls", 1,
		"how often replicas are rolled from one release to the other, and back with the next; make test-upgrades has 10")
	upgradeTasks = flag.Int("upgrade-tasks", 100,
		"live tasks; there are a fifth as many live workers, and a tenth as many tasks die each time")
)

// otherRelease is the program of otherCommit, built once. Without its paths the build cache keeps it.
var otherRelease = sync.OnceValues(func() (string, error) {
	source, path := filepath.Join(buildDir, "other"), filepath.Join(buildDir, "lubdub-other")
	if err := os.Mkdir(source, 0o755); err != nil {
		return "", err
	}
	build := `git -C "$(git rev-parse --show-toplevel)" archive "$0" | tar -x -C "$1" && cd "$1" &&
		go build -trimpath -ldflags '-X main.version=0.0.1' -o "$2" ./cmd/lubdub`
	if out, err := exec.Command("sh", "-c", build, *otherCommit, source, path).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", *otherCommit, err, out)
	}
	return path, nil
})

// Two releases run concurrently on one store: replicas of the one are replaced by those of the other, one by one, under load, also when a
// release is rolled back (docs/upgrades.md). Clients see nothing but an occasional closed connection or 503: acknowledged results are
// kept, live workers stay alive, dead ones are found, and their tasks are finished by others.
func TestTwoReleasesRunConcurrently(t *testing.T) {
	testenv.OnlyAll(t)
	skipIfShort(t)
	if out, err := exec.Command("git", "cat-file", "-e", *otherCommit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("commit %s is not in this checkout's history, so there is nothing to run together with this tree; "+
			"fetch all of it (git fetch --unshallow): %v %s", *otherCommit, err, out)
	}
	t.Parallel()
	for name, olderFirst := range map[string]bool{"the-older-is-upgraded": true, "the-newer-is-taken-back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			older, err := otherRelease()
			if err != nil {
				t.Fatal(err)
			}
			newer := testenv.Program(t, "lubdub")
			from, to := newer, older
			if olderFirst {
				from, to = older, newer
			}
			began := time.Now()
			s := newMixedReleases(t, newer, from)
			for range *upgradeRolls {
				s.roll(to)
				from, to = to, from
			}
			s.load.finish()
			s.logSummary(time.Since(began))
		})
	}
}

// The deployment of two replicas, and its clients.
type mixedReleases struct {
	*stage
	load      *restartLoad
	newer     string   // the program of this tree
	versioned bool     // it has been there
	addrs     []string // of the replicas, the oldest first
	lives     int
	inherit   func() // has others end what the dead have held
	inherited int    // tasks of dead workers that others have ended

	client *redis.Client
	read   [stageShards]string // the last event that was read, by shard
	mortal map[string]bool     // who may be declared dead; true: he was
	killed int
}

func newMixedReleases(t *testing.T, newer, release string) *mixedReleases {
	balancer := &replicas{spread: spread{RoundTripper: &http.Transport{MaxIdleConnsPerHost: 256}}}
	client := &http.Client{Transport: balancer, Timeout: 10 * time.Second}
	s := &mixedReleases{newer: newer, mortal: map[string]bool{}}
	s.stage = &stage{T: t, hosts: balancer, crowd: newCrowd(t, client, *outageTimeout)}
	s.redis = redistest.StartServer(t, "--appendonly", "yes")
	s.client = s.redis.Client()
	t.Cleanup(func() { _ = s.client.Close() })
	for range 2 {
		s.join(release)
	}
	s.load = newRestartLoad(t, client)
	s.load.pause = 50 * time.Millisecond
	s.load.begin()
	s.add(*upgradeTasks, false)
	s.addWorkers(*upgradeTasks/5, false)
	s.bear()
	s.load.awaitMore()
	return s
}

func (s *mixedReleases) logSummary(took time.Duration) {
	s.Helper()
	l := s.load
	s.Logf("%d rolls in %v: %d tasks and %d requests acknowledged, %d tried again after 503, %d after a closed connection, "+
		"%d failed, %d lost; %d beats, %d killed, %d dead found, %d tasks of dead workers ended by others",
		*upgradeRolls, took.Round(time.Millisecond), len(l.tasks), l.acknowledged.Load(), l.unavailable.Load(), l.closed.Load(),
		l.failed.Load(), l.lost, s.acceptedBeats.Load(), s.killed, s.declaredDead(), s.inherited)
}

// join starts a replica and sends clients to it.
func (s *mixedReleases) join(release string) {
	s.Helper()
	r := launchBy(s.T, withKey, release, "serve", "--redis", s.redis.URL(),
		"--shards", fmt.Sprint(stageShards), "--redis-timeout", "2s", "--worker-heartbeat-interval", (*outageTimeout / 3).String(),
		"--health-check-period", "0s", "--public-url", "http://lubdub", "--log-level", "warn",
		"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	url, _ := r.urls()
	s.fronts = append(s.fronts, r)
	s.addrs = append(slices.Clone(s.addrs), strings.TrimPrefix(url, "http://"))
	s.hosts.set(s.addrs)
	s.versioned = s.versioned || release == s.newer
}

// leave stops the replica that has been there for longest.
func (s *mixedReleases) leave() {
	s.Helper()
	leaves := s.fronts[0]
	s.fronts, s.addrs = s.fronts[1:], s.addrs[1:]
	s.hosts.set(s.addrs)
	leaves.signal(syscall.SIGTERM)
	if code := leaves.wait(); code != exitOK {
		s.Fatalf("a replica ended with %d: %s", code, leaves.errs)
	}
}

// roll replaces both replicas, one by one.
func (s *mixedReleases) roll(release string) {
	s.Helper()
	for range 2 {
		s.leave()
		s.join(release)
		s.live()
	}
}

// bear brings those to life who die when the next replica has joined.
func (s *mixedReleases) bear() {
	s.Helper()
	s.lives++
	s.silent = make(chan struct{})
	s.add(max(5, *upgradeTasks/10), true)
	s.addWorkers(max(2, *upgradeTasks/50), true)
	s.inherit = s.bequeath()
}

// live continues until the current replicas have done everything once: members that came before the newest of them die and are found,
// others finish their tasks, and tasks end.
func (s *mixedReleases) live() {
	s.Helper()
	s.fallSilent()
	s.load.awaitMore()
	for _, id := range s.fallen() {
		s.mortal[id] = false
	}
	until(s.T, "all the dead are found", func() bool {
		s.readEvents()
		return s.declaredDead() == len(s.mortal)
	})
	s.inherit()
	s.mu.Lock()
	if len(s.refused) > 0 {
		s.Errorf("%d beats of live ones were finally refused, such as %s", len(s.refused), s.refused[0])
	}
	s.mu.Unlock()
	if got := s.client.HGet(s.ctx, "lubdub:{0}:meta", "schema").Val(); s.versioned && got == "" {
		s.Error("the store has no version, though a replica was there that writes one")
	}
	if s.Failed() {
		s.FailNow()
	}
	s.bear()
}

// declaredDead counts who was declared dead and is.
func (s *mixedReleases) declaredDead() (n int) {
	for _, dead := range s.mortal {
		if dead {
			n++
		}
	}
	return n
}

// readEvents reads the new events. No live worker is declared dead, and no release repairs what the other has written.
func (s *mixedReleases) readEvents() {
	s.Helper()
	for shard := range s.read {
		since := "-"
		if s.read[shard] != "" {
			since = "(" + s.read[shard]
		}
		entries, err := s.client.XRange(s.ctx, fmt.Sprintf("lubdub:{%d}:events", shard), since, "+").Result()
		s.must(err)
		for _, v := range entries {
			s.read[shard] = v.ID
			e := event{kind: v.Values["type"].(string)}
			e.subject, _ = v.Values["subject"].(string)
			_, mortal := s.mortal[e.subject]
			switch {
			case e.kind == "system.repaired" || e.kind == "system.adopted":
				s.Errorf("a store that lost nothing: %v", v.Values)
			case !e.verdict() && e.kind != "task.failed":
			case mortal:
				s.mortal[e.subject] = true
			case s.heldUp() > s.interval:
				s.Logf("%s of %s, while clients were themselves held up for %v", e.kind, e.subject, s.heldUp())
			default:
				s.killed++
				s.Errorf("of one who lives: %v", v.Values)
			}
		}
	}
}

// fallen are those of the crowd who have fallen silent and are not known as mortal yet.
func (s *mixedReleases) fallen() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, m := range s.members {
		if _, known := s.mortal[id]; m.mortal && !known {
			ids = append(ids, id)
		}
	}
	return ids
}

// bequeathed is how many tasks a worker holds that dies.
const bequeathed = 5

// bequeath has a worker claim tasks and beat no more. In the function that it gives another worker gets them, and ends them.
func (s *mixedReleases) bequeath() (inherit func()) {
	s.Helper()
	queue := fmt.Sprintf("family-%d", s.lives)
	for n := range bequeathed {
		id := fmt.Sprintf("%s-%d", queue, n)
		task := v1.CreateTaskRequest{TaskID: id, Queue: queue, Type: "x"}
		s.must(s.load.do("POST", "/v1/tasks", s.admin, id, task, nil, http.StatusCreated))
		s.mortal[id] = false
	}
	s.claimAll(s.hire(queue, "dies"), queue, 1)
	return func() {
		s.Helper()
		heir := s.hire(queue, "heir")
		for _, e := range s.claimAll(heir, queue, 2) {
			end := v1.CompletedRequest{Attempt: e.Attempt, Outcome: v1.OutcomeSucceeded}
			s.must(s.load.do("POST", "/v1/tasks/"+e.TaskID+"/completed", e.TaskToken, "", end, nil, http.StatusOK))
			s.inherited++
		}
		s.must(s.load.do("POST", "/v1/workers/"+heir.WorkerID+"/deregister", heir.WorkerToken, "", struct{}{}, nil, http.StatusOK))
	}
}

func (s *mixedReleases) hire(queue, name string) (w v1.RegisterWorkerResponse) {
	s.Helper()
	worker := v1.RegisterWorkerRequest{Queue: queue, Types: []string{"x"}, Name: name}
	s.must(s.load.do("POST", "/v1/workers", s.admin, "", worker, &w, http.StatusCreated))
	s.mortal[w.WorkerID] = false
	return w
}

func (s *mixedReleases) claimAll(w v1.RegisterWorkerResponse, queue string, attempt int) (got []v1.TaskEnvelope) {
	s.Helper()
	wait, most := int64(500), bequeathed
	for n := 0; len(got) < bequeathed && n < 100; n++ {
		var some v1.ClaimResponse
		claim := v1.ClaimRequest{Max: &most, WaitMs: &wait, ClaimID: fmt.Sprint(n)}
		s.must(s.load.do("POST", "/v1/queues/"+queue+"/claim", w.WorkerToken, "", claim, &some, http.StatusOK))
		got = append(got, some.Tasks...)
	}
	if len(got) != bequeathed || slices.ContainsFunc(got, func(e v1.TaskEnvelope) bool { return e.Attempt != attempt }) {
		s.Fatalf("%d of %d tasks claimed from %s, and all of them should be attempt %d: %+v", len(got), bequeathed, queue, attempt, got)
	}
	return got
}

// A program that is too old for the store does not start, and one that runs ends; both report what to do.
func TestAProgramThatIsLeftBehindEnds(t *testing.T) {
	t.Parallel()
	server := redistest.StartServer(t)
	serve := func() *running {
		return launch(t, withKey, append([]string{"serve", "--redis", server.URL()}, anyPort...)...)
	}
	runs := serve()
	runs.urls()
	c := server.Client()
	defer func() { _ = c.Close() }()
	if err := c.HSet(t.Context(), "lubdub:{0}:meta", "schema", 9, "least", 8).Err(); err != nil {
		t.Fatal(err)
	}
	for when, r := range map[string]*running{"it runs": runs, "it starts": serve()} {
		if code := r.wait(); code != exitFailed {
			t.Errorf("%s: it ended with %d", when, code)
		}
		for _, words := range []string{"version 9 of the stored format", "version 8 or newer", "docs/upgrades.md"} {
			if !strings.Contains(r.errs.String(), words) {
				t.Errorf("%s: the log lacks %q: %s", when, words, r.errs)
			}
		}
	}
}
