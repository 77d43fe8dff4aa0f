package why

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// addPaused reports who paused a queue and when, and the command that resumes it.
func (a *Explanation) addPaused(ctx context.Context, s *session.Session, q *v1.Queue) error {
	if !q.Paused {
		return nil
	}
	all, _, err := newestEvents(ctx, s, url.Values{"queue": {q.Queue}, "type": {"queue.paused"}, "order": {"desc"}}, 1)
	if err != nil && !missing(err) {
		return err
	}
	paused := "is paused"
	if len(all) > 0 {
		paused = "has been paused since " + timeAndAge(s, all[0].Time)
		if all[0].By != "" {
			paused += " by " + all[0].By
		}
		var why struct{ Reason *string }
		if json.Unmarshal(all[0].Data, &why) == nil {
			paused += because(why.Reason, nil)
		}
	}
	a.addf("Queue %s %s: no task is dispatched until `lubdub queue resume %s`.", q.Queue, paused, q.Queue)
	return nil
}

// ExplainQueue explains a queue.
func ExplainQueue(ctx context.Context, s *session.Session, id string) (*Explanation, error) {
	e, err := resource.Queues.Find(ctx, s, id)
	if err != nil {
		return nil, err
	}
	a, q := &Explanation{parts: map[string]json.RawMessage{"queue": e.Raw}}, e.Value
	a.addf("Queue %s: %s, %d running; workers: %d online, %d draining, %d offline.", q.Queue, output.Count(q.Depth, "waiting task"),
		q.Running, q.Workers.Online, q.Workers.Draining, q.Workers.Offline)
	if err := a.addPaused(ctx, s, q); err != nil {
		return nil, err
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
	return a, a.addEvents(ctx, s, url.Values{"queue": {q.Queue}, "type": {"queue.*,worker.*," + losses}}, "--queue "+q.Queue)
}
