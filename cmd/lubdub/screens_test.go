package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/sdkrunner"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

var update = flag.Bool("update", false, "write the screens into docs/troubleshooting.md")

const screensPage = "../../docs/troubleshooting.md"

// The screens of docs/troubleshooting.md are what lubdub status and lubdub why print in these situations; times, addresses and ids vary.
func TestTroubleshootingHasTheScreensThatArePrinted(t *testing.T) {
	testenv.OnlyAll(t)
	skipIfShort(t)
	runners, err := sdkrunner.Find("go", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		title    string   // the heading on the page
		signs    []string // what status prints once the situation is there
		settings []string
		play     func(*scene) (id string) // returns what why is asked about
	}{
		{"All is well", []string{"1 worker fresh", "All systems healthy"}, nil, func(s *scene) string {
			s.hire("ann")
			return s.online("ann").WorkerID
		}},
		{"A queue is paused", []string{"1 worker fresh", "is paused"}, nil, func(s *scene) string {
			s.hire("ann")
			s.online("ann")
			must[v1.Queue](s.t)(s.client.PauseQueue(s.t.Context(), "mail", v1.PauseQueueRequest{Reason: "the mail server is down"}))
			return s.create("letter-1", "letter")
		}},
		{"A worker was killed", []string{"1 worker fresh", "lost in the last hour while holding 1 attempt"}, nil, func(s *scene) string {
			s.create("letter-1", "bomb")
			ann := s.hire("ann")
			id := s.holds("ann")
			s.kill(ann)
			s.hire("bob")
			s.holds("bob")
			return id
		}},
		{"A task kills its workers", []string{"1 worker fresh", "may be killing them"}, nil, func(s *scene) string {
			id := s.create("letter-1", "bomb")
			for _, name := range []string{"ann", "bob", "cat"} {
				worker := s.hire(name)
				s.holds(name)
				s.kill(worker)
			}
			s.hire("dan")
			s.holds("dan")
			return id
		}},
		{"A worker flaps", []string{"1 worker fresh", "is flapping"}, nil, func(s *scene) (id string) {
			for range 3 {
				worker := s.hire("ann")
				id = s.online("ann").WorkerID
				s.kill(worker)
				s.offline(id)
			}
			s.hire("ann")
			return s.online("ann").WorkerID
		}},
		{"A version of the workers fails", []string{"4 workers fresh", "All of the first group ran on version 2.0"}, nil,
			func(s *scene) (id string) {
				s.fail("zoe", "2.0")
				for n := range 5 {
					id = s.create(fmt.Sprintf("letter-%d", n+1), "letter")
					s.ends(id)
				}
				for _, name := range []string{"ann", "bob", "cat"} {
					s.hire(name)
					s.online(name)
				}
				return id
			}},
		{"The brake is engaged", []string{"60 silent past the timeout", "is delaying the expiry of 60 workers and tasks"},
			[]string{"LUBDUB_MASS_EXPIRY_BRAKE=on"}, func(s *scene) string {
				var id string
				for n := range 60 {
					id = must[v1.RegisterWorkerResponse](s.t)(s.client.RegisterWorker(s.t.Context(), v1.RegisterWorkerRequest{
						Queue: "mail", Types: []string{"letter"}, Name: fmt.Sprintf("mailer-%d", n), MachineID: "host-1"})).WorkerID
				}
				return id
			}},
		{"Redis is full", []string{"rejects writes", "Heartbeats cannot be written"}, nil, func(s *scene) string {
			id := s.create("letter-1", "letter")
			if err := s.store.Client().ConfigSet(s.t.Context(), "maxmemory", "1mb").Err(); err != nil {
				s.t.Fatal(err)
			}
			return id
		}},
		{"Redis is frozen", []string{"is not responding"}, nil, func(s *scene) string {
			id := s.create("letter-1", "letter")
			if err := s.store.Freeze(); err != nil {
				s.t.Fatal(err)
			}
			return id
		}},
	} {
		t.Run(s.title, func(t *testing.T) {
			st := newScene(t, runners[0].Command, s.settings)
			id := s.play(st)
			printed, want := "", screenOf(t, s.title)
			for deadline := time.Now().Add(long); ; time.Sleep(50 * time.Millisecond) { // between two questions; nothing is concluded from it
				status, why := st.run("status"), st.run("why", id)
				printed = st.screens(status, why)
				there := !slices.ContainsFunc(s.signs, func(sign string) bool { return !strings.Contains(status.out, sign) })
				if there && (*update || normalized(printed) == normalized(want)) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s has another screen; write it with: go test ./cmd/lubdub -run %s -update (LUBDUB_TEST_ALL=1)\n%s", screensPage,
						"TestTroubleshootingHasTheScreensThatArePrinted", printed)
				}
			}
			if *update && normalized(printed) != normalized(want) {
				page := strings.Replace(readFile(t, screensPage), "### "+s.title+"\n\n```text\n"+want, "### "+s.title+"\n\n```text\n"+printed, 1)
				if err := os.WriteFile(screensPage, []byte(page), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// scene is a deployment in which a situation is played.
type scene struct {
	*desk
	client        *client.Client
	store         *redistest.Server
	runner, enrol string
}

func newScene(t *testing.T, runner string, settings []string) *scene {
	t.Helper()
	redis := redistest.StartServer(t, "--appendonly", "yes")
	server := launch(t, append(append([]string{"LUBDUB_REDIS=" + redis.URL(), "LUBDUB_SHARDS=2", "LUBDUB_LISTEN=127.0.0.1:0",
		"LUBDUB_ADMIN_LISTEN=127.0.0.1:0", "LUBDUB_LOG_LEVEL=error", "LUBDUB_REDIS_TIMEOUT=2s",
		"LUBDUB_WORKER_HEARTBEAT_INTERVAL=500ms", "LUBDUB_WORKER_TIMEOUT_MULTIPLIER=8"}, settings...), withKey...), "serve")
	s := &scene{desk: &desk{t: t, server: server, redis: redis.URL()}, store: redis, runner: runner,
		enrol: bearer(t, token.RoleEnroll, time.Now())}
	s.api, _ = server.urls()
	s.environ = []string{"XDG_CONFIG_HOME=" + t.TempDir(), "LUBDUB_URL=" + s.api, "LUBDUB_TOKEN=" + bearer(t, token.RoleOperator, time.Now())}
	s.client = s.desk.client()
	return s
}

func (s *scene) hire(name string) *exec.Cmd {
	s.t.Helper()
	return startRunner(s.t, s.runner, s.api, s.enrol, "mail", name, true)
}

// fail starts a worker whose tasks fail.
func (s *scene) fail(name, version string) {
	s.t.Helper()
	c, err := client.New(s.api, client.Token(s.enrol))
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := worker.New(c, "mail", worker.Name(name), worker.Version(version), worker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.t.Fatal(err)
	}
	w.Handle("letter", func(context.Context, *worker.Task) (any, error) {
		return nil, worker.Permanent(errors.New("no template for letters"))
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

func (s *scene) kill(worker *exec.Cmd) {
	s.t.Helper()
	if err := worker.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
}

// create creates a task that is retried at once after a loss. One of the type bomb never ends.
func (s *scene) create(id, kind string) string {
	s.t.Helper()
	losses, backoff := 9, int64(0)
	return must[client.Created](s.t)(s.client.CreateTask(s.t.Context(), v1.CreateTaskRequest{TaskID: id, Queue: "mail", Type: kind,
		Retry: &v1.RetryPolicy{MaxLosses: &losses, InitialBackoffMs: &backoff}})).Task.TaskID
}

// online waits until a worker is.
func (s *scene) online(name string) (w v1.Worker) {
	s.t.Helper()
	until(s.t, name+" is online", func() bool {
		all := must[v1.WorkerList](s.t)(s.client.ListWorkers(s.t.Context(), client.WorkerQuery{Name: name, Status: v1.Online})).Workers
		if len(all) == 1 {
			w = all[0]
		}
		return len(all) == 1
	})
	return w
}

// offline waits until a worker has been lost.
func (s *scene) offline(id string) {
	s.t.Helper()
	until(s.t, id+" is lost", func() bool {
		return must[v1.Worker](s.t)(s.client.GetWorker(s.t.Context(), id)).Status == v1.Offline
	})
}

// ends waits until a task has failed.
func (s *scene) ends(id string) {
	s.t.Helper()
	until(s.t, id+" has failed", func() bool { return must[v1.Task](s.t)(s.client.GetTask(s.t.Context(), id)).State == v1.Failed })
}

// holds waits until a worker runs letter-1, and returns the worker's id.
func (s *scene) holds(name string) (id string) {
	s.t.Helper()
	until(s.t, name+" runs the task", func() bool {
		id = s.online(name).WorkerID
		task := must[v1.Task](s.t)(s.client.GetTask(s.t.Context(), "letter-1"))
		return task.State == v1.Running && *task.WorkerID == id
	})
	return id
}

// screens is what commands printed, with the commands and their exit codes, and with short names for what differs in each run.
func (s *scene) screens(answers ...answer) string {
	s.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		s.t.Fatal(err)
	}
	var texts []string
	for _, a := range answers {
		text := fmt.Sprintf("$ lubdub %s\n%s%s", strings.Join(a.args, " "), a.out, a.err)
		if a.code != 0 {
			text += fmt.Sprintf("(exit code %d)\n", a.code)
		}
		texts = append(texts, text)
	}
	text := strings.NewReplacer(s.api, "http://127.0.0.1:8080", s.store.Addr, "127.0.0.1:6379", host, "host-1").
		Replace(strings.Join(texts, "\n"))
	text = aVersion.ReplaceAllString(text, "")
	short := map[string]string{}
	return longID.ReplaceAllStringFunc(text, func(id string) string {
		kind, _, _ := strings.Cut(id, "_")
		if short[id] == "" {
			short[id] = fmt.Sprintf("%s_%d", kind, len(short)+1)
		}
		return short[id]
	})
}

var (
	aVersion = regexp.MustCompile(`, version v[\w.+-]+`) // of the runner, which only a build of a clean checkout has
	longID   = regexp.MustCompile(`\b[a-z]{3}_[0-9A-Z]{26,}\b`)
	aTime    = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
	aSpan    = regexp.MustCompile(`\d+(\.\d+)?( ms| s| min|ms|s|m\d+s|m)\b|\d+(\.\d+)? (%|MiB)`)
	aMessage = regexp.MustCompile(`\(request [^)]*\)`)
)

// normalized is a screen without what differs in each run: times, spans, the id of a request, and the order of events of the same moment.
func normalized(screen string) string {
	lines := strings.Split(aMessage.ReplaceAllString(aSpan.ReplaceAllString(aTime.ReplaceAllString(screen, "TIME"), "SPAN"), ""), "\n")
	if at := slices.Index(lines, "Events:"); at >= 0 {
		slices.Sort(lines[at:])
	}
	return strings.Join(lines, "\n")
}

// screenOf is the screen under a heading of the page.
func screenOf(t *testing.T, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(readFile(t, screensPage), "### "+title+"\n\n```text\n")
	if !found {
		t.Fatalf("%s has no screen %q", screensPage, title)
	}
	screen, _, _ := strings.Cut(rest, "```")
	return screen
}
