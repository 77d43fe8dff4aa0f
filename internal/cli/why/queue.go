package why

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// ExplainQueue explains a queue.
func ExplainQueue(ctx context.Context, s *session.Session, id string) (*Explanation, error) {
	e, err := resource.Queues.Find(ctx, s, id)
	if err != nil {
		return nil, err
	}
	a, q := &Explanation{parts: map[string]json.RawMessage{"queue": e.Raw}}, e.Value
	a.addf("Queue %s: %s, %d running; workers: %d online, %d draining, %d offline.", q.Queue, output.Count(q.Depth, "claimable task"),
		q.Running, q.Workers.Online, q.Workers.Draining, q.Workers.Offline)
	if q.Paused {
		a.addf("It is paused: no task is dispatched.")
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
		a.addf("  %s %s waiting, the oldest for %s; %s", output.Count(t.Depth, "task"), of, output.Milliseconds(t.OldestWaitMs), runnable)
	}
	return a, a.addEvents(ctx, s, url.Values{"queue": {q.Queue}, "type": {"worker.*," + losses}}, "--queue "+q.Queue)
}
