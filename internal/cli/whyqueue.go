package cli

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/output"
)

// whyQueue tells what is known of a queue.
func whyQueue(ctx context.Context, s *session, id string) (*account, error) {
	e, err := queues.one(ctx, s, id)
	if err != nil {
		return nil, err
	}
	a, q := &account{parts: map[string]json.RawMessage{"queue": e.raw}},
		e.T
	a.say("Queue %s: %s could be claimed, %d run; workers: %d ONLINE, %d DRAINING, %d OFFLINE.", q.Queue, output.Count(q.Depth, "task"),
		q.Running,
		q.Workers.Online, q.Workers.Draining, q.Workers.Offline)
	if q.Paused {
		a.say("It is paused: nothing is handed out.")
	}
	for _, t := range q.Types {
		of := "without a type"
		if t.Type != nil {
			of = "of type " + *t.Type
		}
		a.say("  %s wait %d, the oldest for %s; %d of them no ONLINE worker can run", of, t.Depth,
			output.Milliseconds(t.OldestWaitMs), t.Unrunnable)
	}
	return a, a.acts(ctx, s, url.Values{"queue": {q.Queue}, "type": {"worker.*," + losses}})
}
