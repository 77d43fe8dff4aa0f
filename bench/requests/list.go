package requests

import "github.com/lubdub-io/lubdub/bench/load"

// listing lists all tasks of a scope page by page, and begins again at the end.
type listing struct {
	control []byte
	token   []byte // of the next page; empty: the first
}

// List lists all tasks repeatedly. Each page counts as one beat.
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
