// Package resource has what the API lists: how each kind of resource is found, shown as a table, followed and acted on by id.
package resource

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// Kind is one kind of resource: where it is and how it is shown.
type Kind[T any] struct {
	Noun    string // task
	Path    string // /v1/tasks
	Entries string // the field of a list that has the entries: tasks
	ID      func(*T) string
	Columns []Column[T]

	Unordered bool // its list has no parameter order
	Unpaged   bool // its list comes as a whole
}

// Column is one of a table.
type Column[T any] struct {
	Name     string
	Wide     bool // shown with -o wide only
	Volatile bool // changes continuously, so --watch ignores it
	Cell     func(of *T, now time.Time) output.Cell
}

func (k *Kind[T]) shownColumns(s *session.Session) []Column[T] {
	if s.Format == output.Wide {
		return k.Columns
	}
	return slices.DeleteFunc(slices.Clone(k.Columns), func(c Column[T]) bool { return c.Wide })
}

// Heading lists the names of the columns that are shown.
func (k *Kind[T]) Heading(s *session.Session) (names []string) {
	for _, c := range k.shownColumns(s) {
		names = append(names, c.Name)
	}
	return names
}

// Rows begins a table of the kind.
func (k *Kind[T]) Rows(s *session.Session) *output.Rows { return s.Rows(k.Heading(s)...) }

// Row lists the cells of one of the kind.
func (k *Kind[T]) Row(s *session.Session, entry *T) (cells []output.Cell) {
	for _, c := range k.shownColumns(s) {
		cells = append(cells, c.Cell(entry, s.Now()))
	}
	return cells
}

// BareID is the id in what `-o name` prints; no id has a slash.
func (k *Kind[T]) BareID(id string) string { return strings.TrimPrefix(id, k.Noun+"/") }

// PathOf is where one of the kind is.
func (k *Kind[T]) PathOf(id string) string {
	if id = k.BareID(id); id == "" {
		id = "-" // no id can be that, so it is refused
	}
	return k.Path + "/" + url.PathEscape(id)
}

// Entry is one of a kind, with its bytes.
type Entry[T any] struct {
	Raw   json.RawMessage
	Value *T
}

// Show writes one of a kind.
func (k *Kind[T]) Show(s *session.Session, raw json.RawMessage, one *T) error {
	return k.ShowRows(s, k.Rows(s), Entry[T]{Raw: raw, Value: one})
}

// ShowRows writes some of a kind, in a table that may have more.
func (k *Kind[T]) ShowRows(s *session.Session, rows *output.Rows, entries ...Entry[T]) error {
	if s.Format.ForPeople() {
		var cells [][]output.Cell
		for _, e := range entries {
			cells = append(cells, k.Row(s, e.Value))
		}
		return rows.Write(cells)
	}
	for _, e := range entries {
		if s.Format == output.Name {
			if _, err := fmt.Fprintln(s.W, k.Noun+"/"+k.ID(e.Value)); err != nil {
				return err
			}
			continue
		}
		if err := s.Raw(e.Raw); err != nil {
			return err
		}
	}
	return nil
}
