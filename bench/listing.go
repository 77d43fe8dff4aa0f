package bench

import "github.com/lubdub-io/lubdub/bench/load"

// listing reads all tasks of a scope page by page, and begins anew at the end.
type listing struct {
	control []byte
	token   []byte // of the next page; empty: the first
}

var nextPageField = []byte(`"nextPageToken":"`)

func (l *listing) Next(dst []byte) []byte {
	dst = append(dst, "GET /v1/tasks?pageSize=100"...)
	if len(l.token) > 0 {
		dst = append(append(dst, "&pageToken="...), l.token...)
	}
	dst = append(dst, " HTTP/1.1\r\nHost: bench\r\n"+bearer...)
	dst = append(dst, l.control...)
	return append(dst, "\r\n\r\n"...)
}

func (l *listing) Answered(status int, body []byte, t *load.Tally) int {
	l.token = l.token[:0]
	if status != 200 {
		t.Refused(refusal(status, body), 1)
		return 0
	}
	l.token = append(l.token, after(body, nextPageField, '"')...)
	return 1
}
