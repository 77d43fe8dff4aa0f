package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/testenv"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// terminal is one of tmux's, in which the program runs.
type terminal struct {
	t      *testing.T
	socket string
}

func newTerminal(d *desk, width, height int, args ...string) *terminal {
	d.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		d.t.Fatalf("%v; make deps installs it", err)
	}
	path := testenv.Program(d.t, "lubdub")
	// The socket's path must be short, which that of a test's own folder need not be.
	folder, err := os.MkdirTemp("", "tmux")
	if err != nil {
		d.t.Fatal(err)
	}
	term := &terminal{d.t, filepath.Join(folder, "s")}
	d.t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", term.socket, "kill-server").Run()
		_ = os.RemoveAll(folder)
	})
	line := append([]string{"env"}, d.environ...)
	line = append(append(line, path), args...)
	command := "'" + strings.Join(line, "' '") + "'; echo ended with $?; cat"
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "sh", "-c", command)
	return term
}

func (t *terminal) tmux(args ...string) string {
	t.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", t.socket}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (t *terminal) press(keys ...string) {
	t.t.Helper()
	t.tmux(append([]string{"send-keys"}, keys...)...)
}

// shows waits until all of these are on the screen.
func (t *terminal) shows(parts ...string) {
	t.t.Helper()
	deadline := time.After(long)
	for {
		text := t.tmux("capture-pane", "-p")
		missing := ""
		for _, part := range parts {
			if !strings.Contains(text, part) {
				missing = part
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			t.t.Fatalf("%q is not on the screen:\n%s", missing, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestOperatorTop(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleOperator)
	c := d.client()
	w := d.worker(c, "ann")
	must[v1.Queue](t)(c.PauseQueue(t.Context(), "other", v1.PauseQueueRequest{}))
	for _, size := range [][2]int{{80, 24}, {160, 50}} {
		top := newTerminal(d, size[0], size[1], "top", "--every", "300ms")
		top.shows("LIVE", "default/default", "WORKER", "STATUS", "LIVENESS", "ONLINE", "ann", "host-ann", "q quit", "o offline", "1 fresh")
		top.press("c")
		top.shows("Cordon "+w.WorkerID+"? y/N", "the same: lubdub worker cordon "+w.WorkerID)
		top.press("n")
		top.shows("Nothing was done.")
		top.press("c", "y")
		top.shows("lubdub worker cordon "+w.WorkerID+": done.", "cordoned")
		top.press("u", "y")
		top.shows("uncordon "+w.WorkerID+": done.", "HINDERED")
		top.press("Enter")
		top.shows("(ann) (queue mail, machine", "worker.registered", "esc back")
		top.press("Escape") // with another key close behind it would be that key with Alt
		top.shows("HINDERED")
		top.press("3")
		top.shows("QUEUE", "other", "yes")
		top.press("/", "m", "a", "i", "Enter")
		top.shows("/mai", "mail")
		top.press("Escape")
		top.shows("other")
		top.press("2")
		top.shows("No tasks.")
		top.press("q")
		top.shows("ended with 0")
	}
	d.is(d.run("top"), exit.Misuse, "top needs a terminal")
}

func TestOperatorTopWithoutServer(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleViewer)
	d.worker(d.client(), "ann")
	top := newTerminal(d, 80, 24, "top", "--every", "300ms")
	top.shows("LIVE", "ann")
	top.press("d", "y")
	top.shows("may not do this") // the server decides what a role may
	if err := d.server.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	top.shows("OFFLINE as of", "ago", "ann")
	top.press("C-c")
	top.shows("ended with 0")
}
