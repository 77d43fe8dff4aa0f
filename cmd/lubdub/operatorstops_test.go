//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// pipe creates a named pipe; its reader waits until open is called, and then for what is written.
func pipe(t *testing.T) (path string, open func() *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func() (f *os.File) {
		until(t, "a process reads from "+path, func() (read bool) {
			var err error
			f, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			return err == nil
		})
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
}

// If the first Ctrl-C does not end a command, the second one does, with a message.
func TestASecondInterruptEndsACommand(t *testing.T) {
	t.Parallel()
	skipIfShort(t)
	path, open := pipe(t)
	r := launch(t, []string{"LUBDUB_URL=http://127.0.0.1:1"}, "task", "create", "-f", path)
	open() // it reads, and nothing comes
	until(t, "it ends", func() bool {
		_ = r.cmd.Process.Signal(os.Interrupt) // two that come at once may count as one
		select {
		case <-r.exited:
			return true
		default:
			return false
		}
	})
	if code := r.wait(); code != exitFailed || !strings.Contains(r.errs.String(), "interrupt again: stopped at once") {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
}

// A token command may leave something behind that has its output open, such as an agent: its token is taken all the same.
func TestATokenCommandMayLeaveAnAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t, token.RoleViewer)
	path, open := pipe(t)
	command := "cat " + path + " 2>/dev/null & printf '%s' " + bearer(t, token.RoleViewer, time.Now())
	d.ok(d.run("context", "set", "agent", "--server", d.api, "--token-command", command))
	r := launch(t, d.environ, "queue", "ls", "--context", "agent")
	if code := r.wait(); code != exit.OK || !strings.Contains(r.errs.String(), "No queue") {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
	_ = open().Close() // ends the agent
}
