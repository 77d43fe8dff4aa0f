package v1

import (
	"errors"
	"time"
)

// TimeLayout is how every time is written: UTC, always with three digits of fraction.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Time is a moment on the wire. The zero Time is written as null and read from null. It reads any RFC 3339
// time and keeps milliseconds.
type Time struct {
	time.Time
}

// At makes a Time, in UTC, cut to milliseconds; the zero time stays zero.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

var errYear = errors.New("v1.Time: the year lies outside 0 to 9999")

// MarshalJSON writes TimeLayout, or null for the zero Time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	u := t.UTC()
	if y := u.Year(); y < 0 || y > 9999 {
		return nil, errYear
	}
	b := make([]byte, 0, len(TimeLayout)+2)
	b = append(b, '"')
	b = u.AppendFormat(b, TimeLayout)
	return append(b, '"'), nil
}

// UnmarshalJSON reads an RFC 3339 time or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	var u time.Time
	if err := u.UnmarshalJSON(b); err != nil { // null leaves u as it is: zero
		return err
	}
	*t = At(u)
	return nil
}
