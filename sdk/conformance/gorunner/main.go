// Command gorunner runs the Go SDK as the conformance harness instructs; sdk/conformance/README.md has the protocol. With a fault to break,
// it is a faulty SDK, which the harness must notice.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// order is the first line that the harness writes.
type order struct {
	Mode          string               `json:"mode"`
	URLs          []string             `json:"urls"`
	Token         string               `json:"token"`
	TokenFile     string               `json:"tokenFile"`
	CAFile        string               `json:"caFile"`
	Lease         string               `json:"lease"`
	Queue         string               `json:"queue"`
	Types         []string             `json:"types"`
	Name          string               `json:"name"`
	Concurrency   int                  `json:"concurrency"`
	SoftStopMs    *int64               `json:"softStopMs"`
	HardStopMs    *int64               `json:"hardStopMs"`
	TaskTimeoutMs *int64               `json:"taskTimeoutMs"`
	WatchdogMs    *int64               `json:"watchdogMs"`
	Handlers      map[string][]step    `json:"handlers"`
	Default       bool                 `json:"default"`
	Workers       int                  `json:"workers"`
	Envelopes     []*v1.TaskEnvelope   `json:"envelopes"`
	Creations     []v1.CreateTasksItem `json:"creations"`
	Break         string               `json:"break"`
}

// deed is a further line.
type deed struct {
	Do   string `json:"do"`
	Gate string `json:"gate"`
}

// runner is one run of the process.
type runner struct {
	order
	client *client.Client
	faults *faults

	mu    sync.Mutex
	gates map[string]chan struct{}
	out   *json.Encoder
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	r := &runner{gates: map[string]chan struct{}{}, out: json.NewEncoder(os.Stdout)}
	if !lines.Scan() {
		fmt.Fprintln(os.Stderr, "no instructions: the conformance harness starts this program")
		os.Exit(2)
	}
	if err := json.Unmarshal(lines.Bytes(), &r.order); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if r.Break == "silent" {
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
	closing := make(chan struct{})
	go r.readCommands(lines, closing)
	unfinished, err := r.run(closing)
	if err != nil {
		r.emit(event{Event: "error", Message: err.Error()})
	}
	r.emit(event{Event: "exit", Unfinished: &unfinished})
	if err != nil || len(unfinished) > 0 {
		os.Exit(1)
	}
}

// It follows further lines until there are no more: then the harness has ended.
func (r *runner) readCommands(lines *bufio.Scanner, closing chan struct{}) {
	for lines.Scan() {
		var d deed
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			continue
		}
		switch d.Do {
		case "release":
			close(r.gate(d.Gate))
		case "close":
			close(closing)
		}
	}
	os.Exit(2)
}

func (r *runner) gate(name string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gates[name] == nil {
		r.gates[name] = make(chan struct{})
	}
	return r.gates[name]
}

func (r *runner) run(closing <-chan struct{}) (unfinished []string, err error) {
	unfinished = []string{}
	opts := []client.Option{client.Token(r.Token), client.Logger(slog.Default())}
	if r.TokenFile != "" {
		opts[0] = client.TokenFile(r.TokenFile)
	}
	if r.CAFile != "" {
		opts = append(opts, client.CAFile(r.CAFile))
	}
	if r.Break != "" {
		if r.faults, err = newFaults(&r.order); err != nil {
			return unfinished, err
		}
		opts = append(opts, client.Transport(r.faults))
	}
	if r.Lease == "strict" {
		opts = append(opts, client.DefaultLease(client.Strict))
	}
	if r.client, err = client.New(strings.Join(r.URLs, ","), opts...); err != nil {
		return unfinished, err
	}
	defer r.client.Close()
	switch r.Mode {
	case "track":
		r.trackAll()
		return unfinished, nil
	case "create":
		return unfinished, r.create()
	}
	ends := make(chan error)
	for range max(1, r.Workers) {
		go func() { ends <- r.work(closing) }()
	}
	for range max(1, r.Workers) {
		var left *worker.Unfinished
		if end := <-ends; errors.As(end, &left) {
			unfinished = append(unfinished, left.TaskIDs...)
		} else if end != nil {
			err = end
		}
	}
	slices.Sort(unfinished)
	return unfinished, err
}

// create makes all creations with one call, and reports what became of them and of the caller's objects.
func (r *runner) create() error {
	count := func() (n int) {
		for _, item := range r.Creations {
			if item.IdempotencyKey != "" {
				n++
			}
		}
		return n
	}
	before := count()
	results, err := r.client.CreateTasks(context.Background(), r.Creations)
	e := event{Event: "created", Drawn: count() - before, Tasks: []string{}}
	for _, one := range results {
		e.Tasks = append(e.Tasks, one.TaskID())
	}
	r.emit(e)
	return err
}

func (r *runner) work(closing <-chan struct{}) error {
	opts := []worker.Option{worker.Types(r.Types...), worker.Name(r.Name), worker.Concurrency(r.Concurrency)}
	if r.SoftStopMs != nil && r.HardStopMs != nil {
		opts = append(opts, worker.StopWithin(ms(r.SoftStopMs), ms(r.HardStopMs)))
	}
	if r.TaskTimeoutMs != nil {
		opts = append(opts, worker.TaskTimeout(ms(r.TaskTimeoutMs)))
	}
	if r.WatchdogMs != nil {
		opts = append(opts, worker.Watchdog(ms(r.WatchdogMs)))
	}
	w, err := worker.New(r.client, r.Queue, opts...)
	if err != nil {
		return err
	}
	for _, t := range r.Types {
		w.Handle(t, r.handle)
	}
	if r.Default {
		w.HandleDefault(r.handle)
	}
	go func() {
		<-closing
		w.Close()
	}()
	return w.RunUntilSignal()
}

func ms(n *int64) time.Duration { return time.Duration(*n) * time.Millisecond }

// event is a line that the runner writes.
type event struct {
	Event        string          `json:"event"`
	Task         string          `json:"task,omitempty"`
	Attempt      int             `json:"attempt,omitempty"`
	Traceparent  string          `json:"traceparent,omitempty"`
	LastProgress *v1.Progress    `json:"lastProgress,omitempty"`
	Checkpoint   json.RawMessage `json:"checkpoint,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Detail       string          `json:"detail,omitempty"`
	What         string          `json:"what,omitempty"`
	FinalState   v1.State        `json:"finalState,omitempty"`
	WillRetry    *bool           `json:"willRetry,omitempty"`
	NextAttempt  int             `json:"nextAttempt,omitempty"`
	Failure      string          `json:"failure,omitempty"`
	Message      string          `json:"message,omitempty"`
	From         int64           `json:"from,omitempty"`
	Until        int64           `json:"until,omitempty"`
	Unfinished   *[]string       `json:"unfinished,omitempty"`
	Tasks        []string        `json:"tasks,omitempty"`
	Drawn        int             `json:"drawn,omitempty"`
}

func (r *runner) emit(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(e)
}

var _ http.RoundTripper = (*faults)(nil)
