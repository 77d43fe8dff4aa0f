package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/lubdub-io/lubdub/internal/sdkrunner"
)

// event is a line that a runner writes.
type event struct {
	Event      string   `json:"event"`
	Task       string   `json:"task"`
	Reason     string   `json:"reason"`
	Detail     string   `json:"detail"`
	Message    string   `json:"message"`
	Unfinished []string `json:"unfinished"`
	Tasks      []string `json:"tasks"` // empty: it was not created
	Drawn      int      `json:"drawn"`
	raw        string
	at         time.Time
}

// process is a runner at work.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	errs  bytes.Buffer
	ended chan struct{}

	mu     sync.Mutex
	events []event
	code   int
}

// start starts a runner; notify is called after each of its events and after its end.
func start(of sdkrunner.Runner, order any, env []string, notify func()) (*process, error) {
	p := &process{cmd: exec.Command(of.Command), ended: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Dir = filepath.Dir(of.Command)
	p.cmd.Stderr = &p.errs
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.write(order); err != nil {
		return nil, err
	}
	go func() {
		defer notify()
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.receive(lines.Text())
			notify()
		}
		_ = p.cmd.Wait() // its code is judged
		p.mu.Lock()
		defer p.mu.Unlock()
		p.code = p.cmd.ProcessState.ExitCode()
	}()
	return p, nil
}

func (p *process) receive(line string) {
	e := event{raw: line, at: time.Now()}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		e = event{Event: "error", Message: fmt.Sprintf("the runner writes what is not JSON: %q", line)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, e)
}

func (p *process) write(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = p.stdin.Write(append(text, '\n'))
	return err
}

// seen returns the events of a kind, of a task and with a reason if these are given.
func (p *process) seen(name, task, reason string) (found []event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Event == name && (task == "" || e.Task == task) && (reason == "" || e.Reason == reason) {
			found = append(found, e)
		}
	}
	return found
}

func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

var signals = map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT}
