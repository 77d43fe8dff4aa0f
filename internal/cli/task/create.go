package task

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type Create struct {
	File          string            `short:"f" placeholder:"FILE" help:"The body of POST /v1/tasks, as JSON; - is standard input. Flags override its fields."`
	ID            string            `name:"id" placeholder:"ID" help:"Task; Lubdub generates one by default."`
	RunID         string            `name:"run" placeholder:"ID" help:"Run that it belongs to."`
	Queue         string            `predictor:"queue" placeholder:"QUEUE" help:"Queue to wait in. Without a queue the task is pushed: the answer is its envelope, with its token."`
	Type          string            `placeholder:"TYPE" help:"Type."`
	Payload       string            `placeholder:"JSON" help:"Payload, any JSON value."`
	Label         map[string]string `placeholder:"K=V" help:"Labels."`
	Interval      *time.Duration    `placeholder:"DURATION" help:"Heartbeat interval."`
	BeatTimeout   *time.Duration    `placeholder:"DURATION" help:"Heartbeat timeout: how long it may be silent."`
	RunTimeout    *time.Duration    `placeholder:"DURATION" help:"How long an attempt may take."`
	Deadline      string            `placeholder:"TIME" help:"When it fails if it has not finished, RFC 3339."`
	RunAt         string            `aliases:"not-before" placeholder:"TIME" help:"When it may be claimed, RFC 3339."`
	Delay         *time.Duration    `placeholder:"DURATION" help:"The same as a time from now on."`
	Key           string            `placeholder:"KEY" help:"Idempotency key: a repeated request with the same key creates no second task."`
	Wait          bool              `help:"Wait until it has ended; exit with 1 unless it SUCCEEDED."`
	session.Flags `embed:""`
}

func (c *Create) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	body, err := c.body(env)
	if err != nil {
		return err
	}
	raw, err := s.Do(env.Context, client.Request{Method: "POST", Path: "/v1/tasks", Body: body, Key: c.Key, Once: c.Key == ""})
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
		s.Note("The task is pushed: its worker needs the envelope, which -o json shows with its token.")
	}
	var task v1.Task
	_ = json.Unmarshal(raw, &task)
	if c.Wait {
		s.Note("task %s", made.TaskID)
		return waitFor(s, []string{made.TaskID}, nil, 0)
	}
	if s.Format.ForPeople() {
		full, err := resource.Tasks.Find(env.Context, s, made.TaskID)
		if exit.Code(err) == exit.NotAllowed {
			_, err = fmt.Fprintln(s.W, made.TaskID)
			return err
		} else if err != nil {
			return err
		}
		return resource.Tasks.Show(s, full.Raw, full.Value)
	}
	return resource.Tasks.Show(s, raw, &task)
}

// body is the request, with the values of flags over those of the file.
func (c *Create) body(env *session.Env) (map[string]any, error) {
	body := map[string]any{}
	if err := session.ReadJSON(env, c.File, &body); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"taskId": c.ID, "runId": c.RunID, "queue": c.Queue, "type": c.Type, "deadline": c.Deadline, "runAt": c.RunAt,
	} {
		if value != "" {
			body[name] = value
		}
	}
	for name, value := range map[string]*time.Duration{
		"heartbeatIntervalMs": c.Interval, "heartbeatTimeoutMs": c.BeatTimeout, "runTimeoutMs": c.RunTimeout,
		"delayMs": c.Delay,
	} {
		if value != nil {
			body[name] = value.Milliseconds()
		}
	}
	if c.Payload != "" {
		if !json.Valid([]byte(c.Payload)) {
			return nil, exit.Misusef("--payload is not JSON; a text is written as '\"text\"'")
		}
		body["payload"] = json.RawMessage(c.Payload)
	}
	if len(c.Label) > 0 {
		body["labels"] = c.Label
	}
	return body, nil
}
