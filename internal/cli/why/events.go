package why

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// maxEvents is how many of the newest events are listed.
const maxEvents = 20

// addEvents lists the newest events of something, oldest first; more has the flags of `lubdub event ls` that list them all. A token
// that may not read events still gets the rest.
func (a *Explanation) addEvents(ctx context.Context, s *session.Session, q url.Values, more string) error {
	q.Set("order", "desc")
	all, raw, err := newestEvents(ctx, s, q, maxEvents)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusForbidden {
		a.addf("This token's role may not read its events.")
		return nil
	}
	if err != nil {
		return err
	}
	a.parts["events"] = raw
	if len(all) == 0 {
		a.addf("No events of it are stored.")
		return nil
	}
	a.addf("Events:")
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Type == "worker.recovered" { // worker.tasks_recovered under its old name
			continue
		}
		a.Sentences = append(a.Sentences, "  "+eventText(all[i]))
	}
	if len(all) == maxEvents {
		a.addf("  (latest %d; all: lubdub event ls %s)", maxEvents, more)
	}
	return nil
}

// newestEvents returns up to n events, and them as a list of the API's own.
func newestEvents(ctx context.Context, s *session.Session, q url.Values, n int) (all []*v1.Event, raw json.RawMessage, err error) {
	list := []json.RawMessage{}
	if _, _, err = resource.EventPages(ctx, s, q, n, func(p *resource.Page[v1.Event]) error {
		for _, e := range p.Entries {
			all, list = append(all, e.Value), append(list, e.Raw)
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	raw, err = json.Marshal(list)
	return all, raw, err
}

// eventText is one event in a line.
func eventText(e *v1.Event) string {
	text := session.FormatTime(e.Time) + "  " + e.Type
	if e.Subject != "" {
		text += " " + e.Subject
	}
	if e.Attempt > 0 {
		text += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	if e.Cause != "" {
		text += ", " + e.Cause
	}
	if e.By != "" {
		text += ", by " + e.By
	}
	return output.Clean(text)
}

// losses are the types of events that report the outcome of tasks that a worker lost.
const losses = "task.zombie,task.retrying,task.failed"
