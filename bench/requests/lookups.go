package requests

import (
	"encoding/json"

	"github.com/lubdub-io/lubdub/bench/load"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// lookups reads tasks, one a request.
type lookups struct {
	*Tasks
	walk
	control []byte
	id      []byte
	check   func(record *v1.Task) string
}

// Lookups reads each task once. check takes what it needs of the record, and returns what is wrong with it; empty: nothing.
func (t *Tasks) Lookups(control string, check func(record *v1.Task) (wrong string)) Sources {
	return func(i, n int) load.Source {
		return &lookups{Tasks: t, walk: t.walk(i, n, true), control: []byte(control), check: check}
	}
}

func (l *lookups) Next(dst []byte) []byte {
	task, ok := l.next()
	if !ok {
		return nil
	}
	l.id = l.appendID(l.id[:0], task)
	return get(dst, "/v1/tasks/", l.id, l.control)
}

func (l *lookups) Answered(status int, body []byte, t *load.Tally) int {
	if expect(200, status, body, t) == 0 {
		return 0
	}
	var record v1.Task
	wrong := "a record that is not JSON"
	if json.Unmarshal(body, &record) == nil {
		wrong = l.check(&record)
	}
	if wrong != "" {
		t.Refused(wrong, 1)
		return 0
	}
	return 1
}

// Ended returns the last entry of a task's history that ended for a reason, and how many did; nil: none.
func Ended(record *v1.Task, reason string) (last *v1.HistoryEntry, times int) {
	for i, e := range record.History {
		if e.Reason != nil && *e.Reason == reason {
			last, times = &record.History[i], times+1
		}
	}
	return last, times
}

// listing reads all tasks of a scope page by page, and begins again at the end.
type listing struct {
	control []byte
	token   []byte // of the next page; empty: the first
}

// List lists all tasks, again and again. Each page counts as one beat.
func List(control string) Sources {
	return func(int, int) load.Source { return &listing{control: []byte(control)} }
}

var nextPageField = []byte(`"nextPageToken":"`)

func (l *listing) Next(dst []byte) []byte {
	if len(l.token) == 0 {
		return get(dst, "/v1/tasks?pageSize=100", nil, l.control)
	}
	return get(dst, "/v1/tasks?pageSize=100&pageToken=", l.token, l.control)
}

func (l *listing) Answered(status int, body []byte, t *load.Tally) int {
	l.token = l.token[:0]
	if expect(200, status, body, t) == 0 {
		return 0
	}
	l.token = append(l.token, after(body, nextPageField, '"')...)
	return 1
}
