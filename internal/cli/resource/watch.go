package resource

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// watchInterval is the interval of a watch.
const watchInterval = 2 * time.Second

// watch shows a list, and then additions, changes and removals.
func (k *Kind[T]) watch(ctx context.Context, s *session.Session, l ListFlags, queries []url.Values) error {
	seen, rows := map[string]string{}, k.Rows(s)
	err := s.Poll(ctx, watchInterval, watchInterval, "trying", func() (done bool, err error) {
		var fresh []Entry[T]
		there := map[string]bool{}
		err = k.EachPage(ctx, s, l.Limit, queries, func(p *Page[T], _ int) error {
			for _, e := range p.Entries {
				there[k.ID(e.Value)] = true
				if print := k.Fingerprint(s, e); seen[k.ID(e.Value)] != print {
					seen[k.ID(e.Value)] = print
					fresh = append(fresh, e)
				}
			}
			return nil
		})
		if err == nil {
			fresh = append(fresh, k.departed(ctx, s, seen, there)...)
		} else if exit.Code(err) != exit.Unavailable {
			return false, err
		}
		if len(fresh) == 0 || ctx.Err() != nil {
			return false, err
		}
		return false, cmp.Or(k.ShowRows(s, rows, fresh...), err)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// departed finds entries that have left a watched list, such as a worker that is now OFFLINE, one page at a time. An unchanged entry is
// only beyond the limit.
func (k *Kind[T]) departed(ctx context.Context, s *session.Session, seen map[string]string, there map[string]bool) (changed []Entry[T]) {
	looked := 0
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		if there[id] {
			continue
		}
		if looked++; looked > LargestPage {
			return changed
		}
		raw, t, err := session.Get[T](ctx, s, k.PathOf(id), nil)
		switch {
		case ctx.Err() != nil || exit.Code(err) == exit.Unavailable:
			return changed
		case err != nil:
			s.Note("%s %s is in this list no more.", k.Noun, id)
		case k.Fingerprint(s, Entry[T]{raw, t}) != seen[id]:
			changed = append(changed, Entry[T]{raw, t})
		}
		delete(seen, id)
	}
	return changed
}

// Fingerprint returns the text by which a watch detects that an entry has changed.
func (k *Kind[T]) Fingerprint(s *session.Session, e Entry[T]) string {
	var b strings.Builder
	for _, c := range k.Columns {
		if !c.Volatile {
			b.WriteString(c.Cell(e.Value, s.Now()).Text + "\x00")
		}
	}
	return b.String()
}
