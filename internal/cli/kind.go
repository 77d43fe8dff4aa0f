package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/suggest"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// kind is one kind of resource: where it is and how it is shown.
type kind[T any] struct {
	noun    string // task
	path    string // /v1/tasks
	entries string // the field of a list that has the entries: tasks
	id      func(*T) string
	columns []column[T]

	unordered bool // its list has no parameter order
	unpaged   bool // its list comes as a whole
}

// column is one of a table.
type column[T any] struct {
	name    string
	wide    bool // shown with -o wide only
	passing bool // changes by itself, so that --watch does not mind
	cell    func(of *T, now time.Time) output.Cell
}

func (k *kind[T]) shown(s *session) []column[T] {
	if s.Format == output.Wide {
		return k.columns
	}
	return slices.DeleteFunc(slices.Clone(k.columns), func(c column[T]) bool { return c.wide })
}

// heading lists the names of the columns that are shown.
func (k *kind[T]) heading(s *session) (names []string) {
	for _, c := range k.shown(s) {
		names = append(names, c.name)
	}
	return names
}

func (k *kind[T]) rows(s *session) *output.Rows { return s.Rows(k.heading(s)...) }

func (k *kind[T]) row(s *session, entry *T) (cells []output.Cell) {
	for _, c := range k.shown(s) {
		cells = append(cells, c.cell(entry, s.now()))
	}
	return cells
}

// named is the id in what `-o name` prints; no id has a slash.
func (k *kind[T]) named(id string) string { return strings.TrimPrefix(id, k.noun+"/") }

// at is where one of the kind is.
func (k *kind[T]) at(id string) string {
	if id = k.named(id); id == "" {
		id = "-" // no id can be that, so it is refused
	}
	return k.path + "/" + url.PathEscape(id)
}

// entry is one of a kind, with its bytes.
type entry[T any] struct {
	raw json.RawMessage
	T   *T
}

// one reads one of a kind. Where there is none of that id the error names the nearest.
func (k *kind[T]) one(ctx context.Context, s *session, id string) (entry[T], error) {
	raw, found, err := get[T](ctx, s, k.at(id), nil)
	return entry[T]{raw: raw, T: found}, k.nearest(ctx, s, id, err)
}

// nearest adds to the error that nothing has an id which one was most likely meant.
func (k *kind[T]) nearest(ctx context.Context, s *session, id string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		return err
	}
	known, failed := k.ids(ctx, s)
	if failed != nil {
		return err
	}
	return withHint(err, suggest.DidYouMean(id, known))
}

// hinted is an error with a suggestion behind it.
type hinted struct {
	error
	hint string
}

func (h hinted) Error() string { return h.error.Error() + h.hint }
func (h hinted) Unwrap() error { return h.error }

// withHint adds a suggestion to an error.
func withHint(err error, hint string) error { return hinted{err, hint} }

// hintOf is the suggestion behind an error, where there is one.
func hintOf(err error) string {
	var h hinted
	errors.As(err, &h)
	return h.hint
}

// ids lists ids of the kind, the newest of many, for suggestions and completion.
func (k *kind[T]) ids(ctx context.Context, s *session) ([]string, error) {
	query := url.Values{"order": {"desc"}, "pageSize": {"100"}}
	if k.unordered || k.unpaged {
		query = nil
	}
	page, err := k.page(ctx, s, query)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range page.entries {
		all = append(all, k.id(e.T))
	}
	return all, nil
}

// page is one page of a list.
type page[T any] struct {
	raw     json.RawMessage
	entries []entry[T]
	next    string
	total   *int
}

func (k *kind[T]) page(ctx context.Context, s *session, query url.Values) (*page[T], error) {
	raw, fields, err := get[map[string]json.RawMessage](ctx, s, k.path, query)
	if err != nil {
		return nil, err
	}
	return k.read(raw, *fields)
}

func (k *kind[T]) read(raw json.RawMessage, fields map[string]json.RawMessage) (*page[T], error) {
	var about struct {
		Next  string `json:"nextPageToken"`
		Total *int   `json:"totalCount"`
	}
	var all []json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &about), json.Unmarshal(fields[k.entries], &all)); err != nil {
		return nil, err
	}
	p := &page[T]{raw: raw, next: about.Next, total: about.Total}
	for _, one := range all {
		e := entry[T]{one, new(T)}
		if err := json.Unmarshal(one, e.T); err != nil {
			return nil, err
		}
		p.entries = append(p.entries, e)
	}
	return p, nil
}

// show writes one of a kind.
func (k *kind[T]) show(s *session, raw json.RawMessage, one *T) error {
	return k.showMore(s, k.rows(s), entry[T]{raw: raw, T: one})
}

func (k *kind[T]) showMore(s *session, rows *output.Rows, entries ...entry[T]) error {
	if s.Format.ForPeople() {
		var cells [][]output.Cell
		for _, e := range entries {
			cells = append(cells, k.row(s, e.T))
		}
		return rows.Write(cells)
	}
	for _, e := range entries {
		if s.Format == output.Name {
			if _, err := fmt.Fprintln(s.W, k.noun+"/"+k.id(e.T)); err != nil {
				return err
			}
			continue
		}
		if err := s.Raw(e.raw); err != nil {
			return err
		}
	}
	return nil
}
