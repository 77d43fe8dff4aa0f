package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type taskCreate struct {
	File        string            `short:"f" placeholder:"FILE" help:"The body of POST /v1/tasks, as JSON; - is standard input. Flags count over it."`
	ID          string            `name:"id" placeholder:"ID" help:"Task; without it Lubdub makes one."`
	RunID       string            `name:"run" placeholder:"ID" help:"Run that it belongs to."`
	Queue       string            `predictor:"queue" placeholder:"QUEUE" help:"Queue to wait in; without one it is pushed: the answer is its envelope, with its token."`
	Type        string            `placeholder:"TYPE" help:"Type."`
	Payload     string            `placeholder:"JSON" help:"Payload, any JSON value."`
	Label       map[string]string `placeholder:"K=V" help:"Labels."`
	Interval    *time.Duration    `placeholder:"DURATION" help:"How often it is to beat."`
	BeatTimeout *time.Duration    `placeholder:"DURATION" help:"How long it may be silent."`
	RunTimeout  *time.Duration    `placeholder:"DURATION" help:"How long an attempt may take."`
	Deadline    string            `placeholder:"TIME" help:"When it fails if it is not done, RFC 3339."`
	NotBefore   string            `placeholder:"TIME" help:"When it may be claimed, RFC 3339."`
	Key         string            `placeholder:"KEY" help:"Idempotency-Key: the same one again creates nothing more."`
	Wait        bool              `help:"Wait until it has ended; exit with 1 unless it SUCCEEDED."`
	Common      `embed:""`
}

func (c *taskCreate) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	body, err := c.body(env)
	if err != nil {
		return err
	}
	raw, err := s.do(env.Context, client.Request{Method: "POST", Path: "/v1/tasks", Body: body, Key: c.Key, Once: c.Key == ""})
	if err != nil {
		return err
	}
	var made struct {
		TaskID string  `json:"taskId"`
		Queue  *string `json:"queue"`
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		return err
	}
	if s.Format.ForPeople() && made.Queue == nil {
		s.note("The task is pushed: its worker needs the envelope, which -o json shows with its token.")
	}
	var task v1.Task
	_ = json.Unmarshal(raw, &task)
	if c.Wait {
		s.note("task %s", made.TaskID)
		return waitFor(s, []string{made.TaskID}, nil, 0)
	}
	if s.Format.ForPeople() {
		full, err := tasks.one(env.Context, s, made.TaskID)
		if ExitCode(err) == ExitNotAllowed {
			_, err = fmt.Fprintln(s.W, made.TaskID)
			return err
		} else if err != nil {
			return err
		}
		return tasks.show(s, full)
	}
	return tasks.show(s, entry[v1.Task]{raw, &task})
}

// body is the request, with what flags say laid over what the file says.
func (c *taskCreate) body(env *Env) (map[string]any, error) {
	body := map[string]any{}
	if err := readJSON(env, c.File, &body); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"taskId": c.ID, "runId": c.RunID, "queue": c.Queue, "type": c.Type, "deadline": c.Deadline, "notBefore": c.NotBefore,
	} {
		if value != "" {
			body[name] = value
		}
	}
	for name, value := range map[string]*time.Duration{
		"heartbeatIntervalMs": c.Interval, "heartbeatTimeoutMs": c.BeatTimeout, "runTimeoutMs": c.RunTimeout,
	} {
		if value != nil {
			body[name] = value.Milliseconds()
		}
	}
	if c.Payload != "" {
		if !json.Valid([]byte(c.Payload)) {
			return nil, misuse("--payload is not JSON; a text is written as '\"text\"'")
		}
		body["payload"] = json.RawMessage(c.Payload)
	}
	if len(c.Label) > 0 {
		body["labels"] = c.Label
	}
	return body, nil
}

// largestFile is more than the API takes, in bytes.
const largestFile = 8 << 20

// readJSON reads a file, or standard input, into what a request says.
func readJSON(env *Env, file string, into any) error {
	if file == "" {
		return nil
	}
	in := env.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return Misuse{err}
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, largestFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return misuse("%s is not the JSON of a request: %w", cmp.Or(strings.TrimPrefix(file, "-"), "standard input"), err)
	}
	return nil
}

type taskWait struct {
	Tasks  []string      `arg:"" predictor:"task" name:"id" help:"Tasks."`
	For    string        `placeholder:"STATE" help:"State to wait for, instead of any end; several with commas."`
	Within time.Duration `placeholder:"DURATION" help:"How long to wait at most; without it for ever."`
	Common `embed:""`
}

func (c *taskWait) Help() string {
	return "Exits with 0 when all have SUCCEEDED, or are in a state of --for, and with 1 when one has ended otherwise or the time is over."
}

func (c *taskWait) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	var states []string
	for state := range strings.SplitSeq(strings.ToUpper(c.For), ",") {
		if state == "" {
			continue
		}
		if !slices.Contains(v1.States, v1.State(state)) {
			return misuse("--for %s is no state of a task; there are %v", state, v1.States)
		}
		states = append(states, state)
	}
	return waitFor(s, c.Tasks, states, c.Within)
}

// waitFor waits for tasks and shows how each has ended.
func waitFor(s *session, ids, states []string, within time.Duration) error {
	ctx := s.env.Context
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	rows, bad := tasks.rows(s), false
	for _, id := range ids {
		e, err := await(ctx, s, id, func(t *v1.Task) bool { return ended(t) || slices.Contains(states, string(t.State)) })
		if err != nil {
			return err
		}
		if err := tasks.showMore(s, rows, []entry[v1.Task]{e}); err != nil {
			return err
		}
		if states == nil {
			bad = bad || e.T.State != v1.Succeeded
		} else {
			bad = bad || !slices.Contains(states, string(e.T.State))
		}
	}
	if bad {
		return silent{}
	}
	return nil
}

func ended(t *v1.Task) bool {
	return t.State == v1.Succeeded || t.State == v1.Failed || t.State == v1.Cancelled
}

// await asks for a task until it is as it should be. A server that does not answer is asked again.
func await(ctx context.Context, s *session, id string, enough func(*v1.Task) bool) (entry[v1.Task], error) {
	pause, down := 200*time.Millisecond, false
	for {
		e, err := tasks.one(ctx, s, id)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return e, fmt.Errorf("the time is over, and task %s has not come to it", id)
		case ctx.Err() != nil:
			return e, errors.New("interrupted; the task goes on")
		case err != nil && ExitCode(err) != ExitUnavailable:
			return e, err
		case err != nil && !down:
			s.note("%v; still trying", err)
		case err == nil && enough(e.T):
			return e, nil
		}
		down = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(pause*3/2, between)
		}
	}
}

type taskWatch struct {
	Task   string `arg:"" predictor:"task" name:"id" help:"Task."`
	Common `embed:""`
}

func (c *taskWatch) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	rows, last := tasks.rows(s), ""
	var failed error
	_, err = await(env.Context, s, c.Task, func(t *v1.Task) bool {
		e := entry[v1.Task]{nil, t}
		now := tasks.print(s, e) + string(t.ProgressPct)
		if now != last {
			last = now
			if e.raw, failed = json.Marshal(t); failed == nil {
				failed = tasks.showMore(s, rows, []entry[v1.Task]{e})
			}
		}
		return ended(t) || failed != nil
	})
	if env.Context.Err() != nil {
		return nil
	}
	return errors.Join(err, failed)
}

type taskTail struct {
	Task   string `arg:"" predictor:"task" name:"id" help:"Task."`
	After  string `placeholder:"WHEN" help:"From when on: a cursor, a time, or how long ago; without it from now."`
	Common `embed:""`
}

func (c *taskTail) Run(env *Env) error {
	return tail(env, &c.Common, client.EventQuery{Subject: c.Task}, c.After)
}
