package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// show lists events page by page; they go on by a cursor, and not by a page's token as other lists do.
func (c *eventLs) show(s *session, q url.Values) error {
	if c.Limit < 1 {
		return misusef("--limit %d shows nothing; `lubdub event tail` follows events", c.Limit)
	}
	rows := events.rows(s)
	asked := []url.Values{{}}
	for name, values := range q {
		asked[0][name] = values
	}
	var all []json.RawMessage
	next, cut, err := eventPages(s.env.Context, s, q, c.Limit, func(p *page[v1.Event]) error {
		for _, e := range p.entries {
			all = append(all, e.raw)
		}
		if s.Format == output.JSON || s.Format == output.YAML || len(p.entries) == 0 {
			return nil
		}
		return events.showMore(s, rows, p.entries...)
	})
	if err != nil {
		return err
	}
	if all == nil {
		s.note("No event%s in %s.", described(asked), s.scope())
	}
	return c.end(s, all, next, cut)
}

// mostShort is how many pages of a list of events may be short: at 5,000 events each, all that 64 shards keep was read by then.
const mostShort = 128

// eventPages gives out pages until n events are there or no more are kept. A page is short, or empty, where a filter passes over
// many events: its cursor goes on then. It returns the last cursor, and whether n was the end of it.
func eventPages(ctx context.Context, s *session, q url.Values, n int, take func(*page[v1.Event]) error) (next string, cut bool, err error) {
	for short := 0; short < mostShort; q.Set("after", next) {
		size := min(n, largestPage)
		q.Set("pageSize", strconv.Itoa(size))
		raw, list, err := get[v1.EventList](ctx, s, events.path, q)
		if err != nil {
			return "", false, err
		}
		if list.Gap != nil {
			s.note("Events between %s and %s are not kept any more.", timeText(list.Gap.From), timeText(list.Gap.To))
		}
		p, err := events.read(raw, map[string]json.RawMessage{events.entries: field(raw, events.entries)})
		if err == nil {
			err = take(p)
		}
		if next = list.Next; err != nil {
			return next, false, err
		}
		if n -= len(p.entries); n <= 0 {
			return next, true, nil
		}
		if next == "" || next == q.Get("after") {
			return next, false, nil
		}
		if len(p.entries) < size {
			short++
		}
	}
	return next, false, nil
}

func (c *eventLs) end(s *session, all []json.RawMessage, next string, cut bool) error {
	if s.Format == output.JSON || s.Format == output.YAML {
		if all == nil {
			all = []json.RawMessage{}
		}
		raw, err := json.Marshal(map[string]any{events.entries: all, "next": next})
		if err != nil {
			return err
		}
		if err := s.Raw(raw); err != nil {
			return err
		}
	}
	if cut {
		s.note("%s are shown, and there may be more; --limit shows more.", output.Count(c.Limit, "event"))
	}
	return nil
}

// field is one field of an object.
func field(raw json.RawMessage, name string) json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	return fields[name]
}
