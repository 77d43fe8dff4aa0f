package cli

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func join(parts []string) string { return strings.Join(parts, ",") }

// show lists events page by page; they go on by a cursor, and not by a page's token as other lists do.
func (c *eventLs) show(s *session, q url.Values) error {
	if c.Limit < 1 {
		return misuse("--limit %d shows nothing; `lubdub event tail` follows events", c.Limit)
	}
	rows, left := events.rows(s), c.Limit
	asked := []url.Values{{}}
	for name, values := range q {
		asked[0][name] = values
	}
	var all []json.RawMessage
	next := ""
	for first := true; left > 0; first = false {
		q.Set("pageSize", strconv.Itoa(min(left, largestPage)))
		raw, list, err := get[v1.EventList](s.env.Context, s, events.path, q)
		if err != nil {
			return err
		}
		if list.Gap != nil {
			s.note("Events between %s and %s are not kept any more.", timeText(list.Gap.From), timeText(list.Gap.To))
		}
		p, err := events.read(raw, map[string]json.RawMessage{events.entries: field(raw, events.entries)})
		if err != nil {
			return err
		}
		if first && len(p.entries) == 0 {
			s.note("No event%s in %s.", described(asked), s.scope())
		}
		if s.Format == output.JSON || s.Format == output.YAML {
			for _, e := range p.entries {
				all = append(all, e.raw)
			}
		} else if len(p.entries) > 0 {
			if err := events.showMore(s, rows, p.entries); err != nil {
				return err
			}
		}
		left, next = left-len(p.entries), list.Next
		if len(p.entries) < min(left+len(p.entries), largestPage) || next == "" {
			return c.end(s, all, next, false)
		}
		q.Set("after", next)
	}
	return c.end(s, all, next, true)
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
