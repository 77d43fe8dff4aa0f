package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/lubdub-io/lubdub/internal/sdkrunner"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// server is a server's process.
type server struct {
	binary, key, url string
	cmd              *exec.Cmd
}

var listening = regexp.MustCompile(`listening on (http://\S+)`)

func startServer(binary string) (*server, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it does not fail
	s := &server{binary: binary, key: "LUBDUB_SIGNING_KEYS=demo=" + base64.StdEncoding.EncodeToString(key[:])}
	s.cmd = s.command("serve", "--redis", "embedded", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--worker-heartbeat-interval", beatsEvery.String(), "--log-level", "error")
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			s.url = m[1]
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s does not listen: %w", binary, s.cmd.Wait())
}

func (s *server) command(args ...string) *exec.Cmd {
	c := exec.Command(s.binary, args...)
	c.Env, c.Stderr = append(os.Environ(), s.key), os.Stderr
	return c
}

func (s *server) token(role string) (string, error) {
	out, err := s.command("token", "--role", role).Output()
	return strings.TrimSpace(string(out)), err
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait() // it was stopped on purpose
}

// worker is a process of an SDK's runner.
type worker struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.Closer
	stopped bool
}

func hire(of sdkrunner.Runner, name, url, token string) (*worker, error) {
	w := &worker{name: name, cmd: exec.Command(of.Command)}
	w.cmd.Dir = filepath.Dir(of.Command)
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.stdin = in
	order, err := json.Marshal(map[string]any{
		"mode": "worker", "urls": []string{url}, "token": token, "lease": "patient", "queue": of.SDK, "types": []string{"mail"}, "name": name,
		"concurrency": places, "handlers": map[string]any{"type:mail": []map[string]any{
			{"progress": []any{50, "written"}}, {"sleep": taskTime.Milliseconds()}, {"return": map[string]any{"by": name}},
		}},
	})
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = in.Write(append(order, '\n'))
	return w, err
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	w.leave()
}

// leave stops it gracefully, unless it is gone.
func (w *worker) leave() {
	if w.stopped {
		return
	}
	w.stopped = true
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	_ = w.cmd.Wait() // it was stopped on purpose
	_ = w.stdin.Close()
}

// printEvents prints what happens to workers, and how many tasks were lost with each.
func (d *demo) printEvents(ctx context.Context) {
	names, lost := map[string]string{}, map[string]int{}
	for e, err := range d.client.Events(client.EventQuery{Types: []string{"worker.*", "task.retrying"}}).All(ctx) {
		if err != nil {
			return
		}
		switch e.Type {
		case "worker.registered":
			if w, err := d.client.GetWorker(ctx, e.Subject); err == nil && w.Name != nil {
				names[e.Subject] = *w.Name
			}
			d.logf("%s has registered", names[e.Subject])
		case "worker.late", "worker.offline":
			d.logf("%s is %s", names[e.Subject], strings.TrimPrefix(e.Type, "worker."))
		case "task.retrying":
			if lost[e.WorkerID]++; lost[e.WorkerID] == 1 {
				d.logf("what %s held goes to others", names[e.WorkerID])
			}
		}
	}
}
