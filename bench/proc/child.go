// Package proc runs the measured programs as separate processes, and reads what they use: CPU and memory from /proc, and what Redis
// reports about itself. Children end with the benchmark, however that ends.
package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Child is a process that the benchmark started.
type Child struct {
	Name string
	Pid  int

	cmd    *exec.Cmd
	lines  chan string // of standard output; closed at its end
	errs   tail
	exited chan struct{} // closed when it has ended
	err    error         // why; set before exited is closed
}

// Start starts a program. Its standard output is read line by line, and the end of its standard error is kept for the error if it
// ends too early.
func Start(name string, cmd *exec.Cmd) (*Child, error) {
	c := &Child{Name: name, cmd: cmd, lines: make(chan string, 16), exited: make(chan struct{})}
	cmd.SysProcAttr = ofOurs()
	cmd.Stderr = &c.errs
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that started the child for the parent's, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := onTheirCores(cmd.Start)
		_ = w.Close()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.exited)
		}
	}()
	if err := <-started; err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.Pid = cmd.Process.Pid
	go func() {
		defer close(c.lines)
		defer out.Close()
		s := bufio.NewScanner(out)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			select {
			case c.lines <- s.Text():
			default: // no caller waits for the next line
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	return c, nil
}

// Line waits for the next line of standard output.
func (c *Child) Line(ctx context.Context, patience time.Duration) (string, error) {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case line, ok := <-c.lines:
		if ok {
			return line, nil
		}
		select {
		case <-c.exited:
			return "", c.failed(fmt.Sprintf("ended (%v) without output", c.err))
		case <-limit.Done():
		}
		return "", c.failed("closed its output without writing to it")
	case <-limit.Done():
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", c.failed(fmt.Sprintf("wrote nothing for %v", patience))
	}
}

// Wait returns when the process has ended, or when ctx ends, which ends the process.
func (c *Child) Wait(ctx context.Context) error {
	select {
	case <-c.exited:
	case <-ctx.Done():
		c.Stop()
		return ctx.Err()
	}
	if c.err != nil {
		return c.failed(c.err.Error())
	}
	return nil
}

func (c *Child) failed(what string) error {
	if stderr := strings.TrimSpace(c.errs.String()); stderr != "" {
		return fmt.Errorf("%s %s; its output:\n%s", c.Name, what, stderr)
	}
	return errors.New(c.Name + " " + what)
}

// Stop ends the process gracefully and waits until it is gone; it is killed after five seconds. It may be called again.
func (c *Child) Stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.exited:
	case <-time.After(5 * time.Second):
		c.Kill()
	}
}

// Kill ends the process immediately.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if more := len(t.text) - tailBytes; more > 0 {
		t.text = append(t.text[:0], t.text[more:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
