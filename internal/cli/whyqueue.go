package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/output"
)

// whyQueue explains a queue.
func whyQueue(ctx context.Context, s *session, id string) (*account, error) {
	e, err := queues.one(ctx, s, id)
	if err != nil {
		return nil, err
	}
	a, q := &account{parts: map[string]json.RawMessage{"queue": e.raw}},
		e.T
	a.say("Queue %s: %s, %d running; workers: %d online, %d draining, %d offline.", q.Queue, output.Count(q.Depth,
		"claimable task"), q.Running,
		q.Workers.Online, q.Workers.Draining, q.Workers.Offline)
	if q.Paused {
		a.say("It is paused: no task is dispatched.")
	}
	for _, t := range q.Types {
		of := "without a type"
		if t.Type != nil {
			of = "of type " + *t.Type
		}
		runnable := "all can be run by an online worker"
		if t.Unrunnable > 0 {
			runnable = fmt.Sprintf("no online worker can run %d of them", t.Unrunnable)
		}
		a.say("  %s %s waiting, the oldest for %s; %s", output.Count(t.Depth, "task"), of, output.Milliseconds(t.OldestWaitMs), runnable)
	}
	return a, a.acts(ctx, s, url.Values{"queue": {q.Queue}, "type": {"worker.*," + losses}}, "--queue "+q.Queue)
}
