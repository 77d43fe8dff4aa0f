package store

import (
	"strconv"
	"time"
)

// Reply is a script's reply: integers, strings and lists, as RESP2 delivers them.
type Reply []any

// At returns part i, nil beyond the end.
func (r Reply) At(i int) any {
	if i < len(r) {
		return r[i]
	}
	return nil
}

// Int returns part i as a number, 0 if it is none.
func (r Reply) Int(i int) int64 {
	switch v := r.At(i).(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

// Str returns part i as a string, "" for a list.
func (r Reply) Str(i int) string {
	switch v := r.At(i).(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// List returns part i as a list, empty if it is none.
func (r Reply) List(i int) Reply {
	v, _ := r.At(i).([]any)
	return v
}

// Strings returns all parts as strings.
func (r Reply) Strings() []string {
	out := make([]string, len(r))
	for i := range r {
		out[i] = r.Str(i)
	}
	return out
}

// Time returns part i, a wall time in ms.
func (r Reply) Time(i int) time.Time { return time.UnixMilli(r.Int(i)).UTC() }

// Bytes returns the total length of all strings in the reply.
func (r Reply) Bytes() (n int) {
	for _, part := range r {
		switch v := part.(type) {
		case string:
			n += len(v)
		case []any:
			n += Reply(v).Bytes()
		}
	}
	return n
}

// Pairs returns a list of names and values, as HGETALL replies, as a map.
func Pairs(r Reply) map[string]string {
	m := make(map[string]string, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		m[r.Str(i)] = r.Str(i + 1)
	}
	return m
}
