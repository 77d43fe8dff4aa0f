package resource

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var Events = &Kind[v1.Event]{
	Noun: "event", Path: "/v1/events", Entries: "events", ID: func(e *v1.Event) string { return e.ID },
	Columns: []Column[v1.Event]{
		{Name: "TIME", Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(session.FormatTime(v1.At(e.Time.Time))) }},
		{Name: "TYPE", Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Cell{Text: e.Type, Mood: eventMoods[e.Type]} }},
		{Name: "SUBJECT", Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.Subject) }},
		{Name: "TRY", Cell: func(e *v1.Event, _ time.Time) output.Cell {
			if e.Attempt == 0 {
				return output.Cell{}
			}
			return output.Number(e.Attempt)
		}},
		{Name: "CAUSE", Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.Cause) }},
		{Name: "WORKER", Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.WorkerID) }},
		{Name: "MACHINE", Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.MachineID) }},
		{Name: "BY", Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.By) }},
		{Name: "QUEUE", Wide: true, Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(e.Queue) }},
		{Name: "DATA", Wide: true, Cell: func(e *v1.Event, _ time.Time) output.Cell { return output.Text(string(e.Data)) }},
	}}

var eventMoods = map[string]output.Mood{
	"task.zombie": output.Bad, "task.failed": output.Bad, "worker.offline": output.Bad, "worker.late": output.Doubtful,
	"worker.flapping": output.Doubtful, "machine.flapping": output.Doubtful, "task.retrying": output.Doubtful,
	"system.mass_expiry_held": output.Bad, "system.outage_credited": output.Doubtful, "system.adopted": output.Doubtful,
	"system.repaired": output.Doubtful, "task.succeeded": output.Good, "worker.tasks_recovered": output.Good, "worker.fresh": output.Good,
}

// Tail follows the events of one object, even if that is unknown: it may have been deleted, or not yet be created.
func (k *Kind[T]) Tail(env *session.Env, c *session.Flags, id string, q client.EventQuery, after string) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	if _, err := k.Find(env.Context, s, id); exit.Code(err) == exit.NotFound {
		s.Note("%v\nIts events are followed all the same.", err)
	}
	return Follow(s, q, after)
}

// Follow shows events until it is interrupted.
func Follow(s *session.Session, q client.EventQuery, after string) error {
	q.After = s.ParseStart(after)
	rows := Events.Rows(s)
	if s.Format.ForPeople() {
		if err := rows.Write(nil); err != nil {
			return err
		}
	}
	for e, err := range s.Client.Events(q).All(s.Env.Context) {
		if gap, ok := errors.AsType[*client.EventGap](err); ok {
			s.Note("%v", gap)
			continue
		}
		if err != nil {
			return s.Explain(err)
		}
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := Events.ShowRows(s, rows, Entry[v1.Event]{Raw: raw, Value: &e}); err != nil {
			return err
		}
	}
	return nil
}

// eventList is a v1.EventList whose events are still as the API wrote them.
type eventList struct {
	v1.EventList
	Events json.RawMessage `json:"events"`
}

// maxShortPages is how many pages of a list of events may be short: at 5,000 events each, all that 64 shards keep was read by then.
const maxShortPages = 128

// EventPages reads pages until n events have been passed on or no more are kept. A page is short, or empty, if a filter skips many
// events: it then continues from the cursor. It returns the last cursor, and whether it stopped because of n.
func EventPages(
	ctx context.Context, s *session.Session, q url.Values, n int, take func(*Page[v1.Event]) error,
) (next string, cut bool, err error) {
	for short := 0; short < maxShortPages; q.Set("after", next) {
		size := min(n, LargestPage)
		q.Set("pageSize", strconv.Itoa(size))
		raw, list, err := session.Get[eventList](ctx, s, Events.Path, q)
		if err != nil {
			return "", false, err
		}
		if list.Gap != nil {
			s.Note("Events between %s and %s are not kept any more.", session.FormatTime(list.Gap.From), session.FormatTime(list.Gap.To))
		}
		p, err := parsePage[v1.Event](raw, list.Events)
		if err == nil {
			err = take(p)
		}
		if next = list.Next; err != nil {
			return next, false, err
		}
		if n -= len(p.Entries); n <= 0 {
			return next, true, nil
		}
		if next == "" || next == q.Get("after") {
			return next, false, nil
		}
		if len(p.Entries) < size {
			short++
		}
	}
	return next, false, nil
}
