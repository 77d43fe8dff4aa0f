package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
)

// Listing are the flags of every list.
type Listing struct {
	Limit int  `default:"100" help:"How many to show at most; 0: all."`
	Watch bool `short:"w" help:"Keep watching for additions, changes and removals until Ctrl-C."`
}

// largestPage is how many entries a page of the API has at most.
const largestPage = 100

// between is how long a watch waits before it looks again.
const between = 2 * time.Second

// list shows what queries find, one after the other.
func (k *kind[T]) list(s *session, l Listing, queries ...url.Values) error {
	if l.Limit < 0 {
		return misusef("--limit %d is negative; 0 shows all", l.Limit)
	}
	ctx := s.env.Context
	if l.Watch {
		return k.watch(ctx, s, l, queries)
	}
	w := &listWriter[T]{kind: k, s: s, rows: k.rows(s)}
	if err := k.each(ctx, s, l.Limit, queries, w.take); err != nil {
		return err
	}
	return w.end(queries)
}

// each gives out page by page, up to a limit.
func (k *kind[T]) each(ctx context.Context, s *session, limit int, queries []url.Values, take func(*page[T], int) error) error {
	left := limit
	for i, query := range queries {
		query = maps.Clone(query)
		for {
			if size := largestPage; !k.unpaged {
				if limit > 0 {
					size = min(size, max(1, left))
				}
				query.Set("pageSize", strconv.Itoa(size))
			}
			p, err := k.page(ctx, s, query)
			if err != nil {
				return err
			}
			if limit > 0 && len(p.entries) > left {
				p.entries, p.next = p.entries[:left], "more"
			}
			left -= len(p.entries)
			if err := take(p, i); err != nil {
				return err
			}
			if p.next == "" {
				break
			}
			if limit > 0 && left <= 0 {
				return nil
			}
			query.Set("pageToken", p.next)
		}
	}
	return nil
}

// listWriter shows a list as its pages come.
type listWriter[T any] struct {
	kind   *kind[T]
	s      *session
	rows   *output.Rows
	pages  int
	shown  int
	raw    json.RawMessage // of the only page
	all    []json.RawMessage
	totals map[int]*int // by query
	more   bool
}

func (w *listWriter[T]) take(p *page[T], query int) error {
	if w.totals == nil {
		w.totals = map[int]*int{}
	}
	w.pages, w.shown, w.more, w.totals[query] = w.pages+1, w.shown+len(p.entries), p.next != "", p.total
	if w.s.Format == output.JSON || w.s.Format == output.YAML {
		w.raw = p.raw
		for _, e := range p.entries {
			w.all = append(w.all, e.raw)
		}
		return nil
	}
	if len(p.entries) == 0 {
		return nil
	}
	return w.kind.showMore(w.s, w.rows, p.entries...)
}

// end writes what is written once: a list as one object, and notes on what is not shown.
func (w *listWriter[T]) end(queries []url.Values) error {
	if w.s.Format == output.JSON || w.s.Format == output.YAML {
		if err := w.whole(); err != nil {
			return err
		}
	}
	switch total := w.total(); {
	case w.shown == 0:
		w.s.note("No %s%s in %s.", w.kind.noun, described(queries), w.s.scope())
	case w.more && total != nil:
		w.s.note("Showing %s of %s (--limit 0 for all).", output.Grouped(int64(w.shown)), output.Count(*total, w.kind.noun))
	case w.more:
		w.s.note("Showing the first %s; there are more (--limit 0 for all).", output.Count(w.shown, w.kind.noun))
	}
	return nil
}

// whole writes the list as the API would, were its pages that long.
func (w *listWriter[T]) whole() error {
	if w.pages == 1 && !w.more {
		return w.s.Raw(w.raw)
	}
	if w.all == nil {
		w.all = []json.RawMessage{}
	}
	list := map[string]any{w.kind.entries: w.all}
	if total := w.total(); total != nil {
		list["totalCount"] = *total
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return w.s.Raw(raw)
}

// total is how many there are; nil: nobody knows.
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

// described tells what lists were asked for.
func described(queries []url.Values) string {
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

// scope tells which tenant and workspace are looked at.
func (s *session) scope() string {
	tenant, workspace := s.token.tenant, s.token.workspace
	if _, claims, err := readClaims(s.token.text); err == nil && tenant == "" {
		tenant, workspace = claims.Tenant, claims.Workspace
	}
	if tenant == "" {
		return s.where()
	}
	return fmt.Sprintf("%s/%s of %s", tenant, workspace, s.where())
}

// watch shows a list, and then what is new in it, has changed, or is in it no more.
func (k *kind[T]) watch(ctx context.Context, s *session, l Listing, queries []url.Values) error {
	seen, rows, down := map[string]string{}, k.rows(s), false
	for {
		var fresh []entry[T]
		there := map[string]bool{}
		err := k.each(ctx, s, l.Limit, queries, func(p *page[T], _ int) error {
			for _, e := range p.entries {
				there[k.id(e.T)] = true
				if print := k.print(s, e); seen[k.id(e.T)] != print {
					seen[k.id(e.T)] = print
					fresh = append(fresh, e)
				}
			}
			return nil
		})
		if err == nil {
			fresh = append(fresh, k.left(ctx, s, seen, there)...)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && ExitCode(err) != ExitUnavailable:
			return err
		case err != nil && !down:
			s.note("%v; still trying", err)
		}
		down = err != nil
		if len(fresh) > 0 {
			if err := k.showMore(s, rows, fresh...); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(between):
		}
	}
}

// left looks for what was in a list that is watched and is so no more, such as a worker that is OFFLINE now, a page of it at a time.
// What has not changed is only behind the limit.
func (k *kind[T]) left(ctx context.Context, s *session, seen map[string]string, there map[string]bool) (changed []entry[T]) {
	looked := 0
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		if there[id] {
			continue
		}
		if looked++; looked > largestPage {
			return changed
		}
		raw, t, err := get[T](ctx, s, k.at(id), nil)
		switch {
		case ctx.Err() != nil || ExitCode(err) == ExitUnavailable:
			return changed
		case err != nil:
			s.note("%s %s is in this list no more.", k.noun, id)
		case k.print(s, entry[T]{raw, t}) != seen[id]:
			changed = append(changed, entry[T]{raw, t})
		}
		delete(seen, id)
	}
	return changed
}

// print is what a watch looks at to see whether an entry has changed.
func (k *kind[T]) print(s *session, e entry[T]) string {
	var b strings.Builder
	for _, c := range k.columns {
		if !c.passing {
			b.WriteString(c.cell(e.T, s.now()).Text + "\x00")
		}
	}
	return b.String()
}
