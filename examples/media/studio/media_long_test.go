//go:build long

package main

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const (
	clips = 12
	// Before the faults the server has stored the checkpoint of each clip that this frame is the next one.
	storedBefore = 4
	// The faults come while each clip waits for the answer to this frame.
	faultsAt = 8
)

// The example works through faults in each language: while all clips are resized one worker is killed and another stopped, and then the
// server freezes. Every result is right, each clip is published once, and the history of each task explains its further attempts.
func TestLongMedia(t *testing.T) {
	for name, prepare := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, prepare)
			killed, stopped := s.worker("killed"), s.worker("stopped")
			submit := s.start("submit", append([]string{"submit", s.url, "missing"}, clipNames()...), "submitter")
			until(t, "each clip has a stored checkpoint", func() bool { return s.checkpoints(storedBefore) == clips })
			s.gate.raise(faultsAt)
			until(t, "all clips are at the frame of the faults", func() bool { return s.reached(faultsAt, 1) })

			killed.signal(syscall.SIGKILL)
			stopped.signal(syscall.SIGTERM)
			killed.exit()
			workers := []*process{s.worker("third"), s.worker("fourth")}
			if code := stopped.exit(); code != 1 {
				t.Errorf("the worker that was stopped ended with %d, want 1: it returns its tasks to the queue", code)
			}
			until(t, "the other workers are at that frame of all clips", func() bool { return s.reached(faultsAt, 2) })

			notices := []func() bool{workers[0].notices("No answer from Lubdub"), workers[1].notices("No answer from Lubdub")}
			s.server.signal(syscall.SIGSTOP)
			until(t, "both workers notice that the server is frozen", func() bool { return notices[0]() && notices[1]() })
			s.gate.raise(clipFrames)
			until(t, "work continues while the server is frozen", func() bool { return s.reached(clipFrames-1, 1) })
			s.server.signal(syscall.SIGCONT)

			if code := submit.exit(); code != 1 {
				t.Errorf("submit ended with %d, want 1: a clip is missing", code)
			}
			s.checkResults(submit.read("out"))
			s.checkPublished()
			s.checkHistories()
			s.checkFrames(workers)
			for _, p := range append(workers, s.server) {
				p.signal(syscall.SIGTERM)
				if code := p.exit(); code != 0 {
					t.Errorf("%s ended with %d", p.name, code)
				}
			}
		})
	}
}

// stage is a deployment of Lubdub with the services around the example in one language.
type stage struct {
	*testing.T
	*studio
	url     string // of the studio
	gate    *gate
	server  *process
	client  *client.Client
	program []string
	environ []string
}

var signingKeys = "LUBDUB_SIGNING_KEYS=k1=" + base64.StdEncoding.EncodeToString([]byte("a key of a test, 32 bytes or more"))

func newStage(t *testing.T, prepare func(*testing.T) (command, environ []string)) *stage {
	s := &stage{T: t, studio: newStudio(), gate: newGate(storedBefore)}
	s.program, s.environ = prepare(t)
	s.studio.stored = s.gate.stored
	listener := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		s.gate.raise(clipFrames)
		listener.CloseClientConnections()
		listener.Close()
	})
	s.url = listener.URL

	listen := redistest.FreeAddr()
	s.environ = append(s.environ, "LUBDUB_URL=http://"+listen)
	// A worker is lost after three heartbeats: longer than a busy host delays one.
	s.server = start(t, "the server", []string{testenv.Program(t, "lubdub"), "serve", "--redis", redistest.StartServer(t).URL(),
		"--listen", listen, "--admin-listen", "127.0.0.1:0", "--worker-heartbeat-interval", "2s", "--redis-timeout", "20s"},
		[]string{signingKeys})
	until(t, "the server listens", func() bool { return strings.Contains(s.server.read("out"), "listening") })
	c, err := client.New("http://"+listen, client.Token(s.token("admin")))
	must(t, err)
	t.Cleanup(c.Close)
	s.client = c
	return s
}

// token creates a token as users do.
func (s *stage) token(role string) string {
	s.Helper()
	cmd := exec.Command(testenv.Program(s.T, "lubdub"), "token", "--role", role)
	cmd.Env = append(cmd.Environ(), signingKeys)
	token, err := cmd.Output()
	must(s.T, err)
	return strings.TrimSpace(string(token))
}

// start starts the example.
func (s *stage) start(name string, args []string, role string) *process {
	s.Helper()
	environ := append(slices.Clone(s.environ), "LUBDUB_TOKEN="+s.token(role), "POD_NAME="+name, "TERMINATION_GRACE_PERIOD_SECONDS=9")
	return start(s.T, name, append(slices.Clone(s.program), args...), environ)
}

// worker starts a worker with a name.
func (s *stage) worker(name string) *process { return s.start(name, []string{"worker"}, "enroll") }

// clipNames returns the names of the clips that the test uses, except the missing one.
func clipNames() (all []string) {
	for i := range clips {
		all = append(all, fmt.Sprintf("clip-%d", i+1))
	}
	return all
}

// file returns the path of a resized frame.
func file(clip string, number int) string { return fmt.Sprintf("%s/small/%04d.ppm", clip, number) }

// reached reports whether all clips have reached a frame so many times.
func (s *stage) reached(number, times int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, clip := range clipNames() {
		if s.puts[file(clip, number)] < times {
			return false
		}
	}
	return true
}

// checkpoints returns how many tasks of type resize have a checkpoint stored in the server.
func (s *stage) checkpoints(want int) (n int) {
	s.Helper()
	for _, task := range s.tasks("resize") {
		task, err := s.client.GetTask(s.Context(), task.TaskID) // lists have no checkpoints
		must(s.T, err)
		if string(task.Details) == strconv.Itoa(want) {
			n++
		}
	}
	return n
}

// tasks returns the tasks of a type.
func (s *stage) tasks(taskType string) (all []v1.Task) {
	s.Helper()
	for task, err := range s.client.Tasks(s.Context(), client.TaskQuery{Queue: "media", Type: taskType}) {
		must(s.T, err)
		all = append(all, task)
	}
	return all
}
