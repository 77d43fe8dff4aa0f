package resource

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// List shows the results of queries, one after the other.
func (k *Kind[T]) List(s *session.Session, l ListFlags, queries ...url.Values) error {
	if l.Limit < 0 {
		return exit.Misusef("--limit %d is negative; 0 shows all", l.Limit)
	}
	if l.Watch {
		return k.watch(s.Env.Context, s, l, queries)
	}
	w := &listWriter[T]{kind: k, s: s, rows: k.Rows(s)}
	if err := k.EachPage(s.Env.Context, s, l.Limit, queries, w.add); err != nil {
		return err
	}
	return w.finish(queries)
}

// ListAll shows all of a kind.
func (k *Kind[T]) ListAll(env *session.Env, c *session.Flags, l ListFlags) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return k.List(s, l, url.Values{})
}

// listWriter shows a list as its pages come.
type listWriter[T any] struct {
	kind   *Kind[T]
	s      *session.Session
	rows   *output.Rows
	pages  int
	shown  int
	raw    json.RawMessage // of the only page
	all    []json.RawMessage
	totals map[int]*int // by query
	more   bool
}

func (w *listWriter[T]) add(p *Page[T], query int) error {
	if w.totals == nil {
		w.totals = map[int]*int{}
	}
	w.pages, w.shown, w.more, w.totals[query] = w.pages+1, w.shown+len(p.Entries), p.Next != "", p.Total
	if w.s.Format == output.JSON || w.s.Format == output.YAML {
		w.raw = p.Raw
		for _, e := range p.Entries {
			w.all = append(w.all, e.Raw)
		}
		return nil
	}
	if len(p.Entries) == 0 {
		return nil
	}
	return w.kind.ShowRows(w.s, w.rows, p.Entries...)
}

// finish writes the end: a list as one object, and notes about what is not shown.
func (w *listWriter[T]) finish(queries []url.Values) error {
	if w.s.Format == output.JSON || w.s.Format == output.YAML {
		if err := w.writeList(); err != nil {
			return err
		}
	}
	switch total := w.total(); {
	case w.shown == 0:
		w.s.Note("No %s%s in %s.", w.kind.Noun, DescribeQueries(queries...), w.s.Scope())
	case w.more && total != nil:
		w.s.Note("Showing %s of %s (--limit 0 for all).", output.Grouped(int64(w.shown)), output.Count(*total, w.kind.Noun))
	case w.more:
		w.s.Note("Showing the first %s; there are more (--limit 0 for all).", output.Count(w.shown, w.kind.Noun))
	}
	return nil
}

// writeList writes the list as the API would, were its pages that long.
func (w *listWriter[T]) writeList() error {
	if w.pages == 1 && !w.more {
		return w.s.Raw(w.raw)
	}
	if w.all == nil {
		w.all = []json.RawMessage{}
	}
	list := map[string]any{w.kind.Entries: w.all}
	if total := w.total(); total != nil {
		list["totalCount"] = *total
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return w.s.Raw(raw)
}

// total returns how many there are; nil: unknown.
func (w *listWriter[T]) total() *int {
	sum := 0
	for _, n := range w.totals {
		if n == nil {
			return nil
		}
		sum += *n
	}
	return &sum
}

// DescribeQueries names the filters of queries.
func DescribeQueries(queries ...url.Values) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(queries[0])) {
		if slices.Contains([]string{"order", "pageSize", "pageToken", "sort"}, name) {
			continue
		}
		var values []string
		for _, q := range queries {
			for _, v := range q[name] {
				if !slices.Contains(values, v) {
					values = append(values, v)
				}
			}
		}
		parts = append(parts, name+"="+strings.Join(values, ","))
	}
	if parts == nil {
		return ""
	}
	return " with " + strings.Join(parts, " and ")
}
