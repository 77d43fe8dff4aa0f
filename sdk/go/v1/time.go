package v1

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"
)

// TimeLayout is the format of every time: UTC, always with three digits of fraction.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Time is a time on the wire. The zero Time is encoded as null and decoded from null. It accepts any RFC 3339 time and keeps milliseconds.
type Time struct {
	time.Time
}

// At returns a Time in UTC, cut to milliseconds; the zero time stays zero.
func At(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

var errYear = errors.New("v1.Time: the year is outside 0 to 9999")

// MarshalJSON encodes TimeLayout, or null for the zero Time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	u := t.UTC()
	if !writable(u) {
		return nil, errYear
	}
	b := make([]byte, 0, len(TimeLayout)+2)
	b = append(b, '"')
	b = u.AppendFormat(b, TimeLayout)
	return append(b, '"'), nil
}

// writable reports whether a time in UTC has a year of four digits: an offset can move it out of these.
func writable(u time.Time) bool { return u.Year() >= 0 && u.Year() <= 9999 }

// UnmarshalJSON decodes an RFC 3339 time or null. It is as strict as RFC 3339, which time.Parse is not, and refuses what MarshalJSON could
// not encode. Its error is a *json.UnmarshalTypeError, so that encoding/json adds the field's name.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	text := string(b)
	if plain := len(b) > 2 && b[0] == '"' && b[len(b)-1] == '"' && bytes.IndexByte(b, '\\') < 0; plain {
		text = text[1 : len(b)-1]
	} else if json.Unmarshal(b, &text) != nil {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[Time]()}
	}
	u, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !strict(text) || !writable(u.UTC()) {
		return &json.UnmarshalTypeError{Value: "string", Type: reflect.TypeFor[Time]()}
	}
	*t = Time{u.UTC().Truncate(time.Millisecond)}
	return nil
}

// strict refuses what time.Parse accepts: hours of one digit, a comma before the fraction, and offsets of 24 hours and more.
func strict(s string) bool {
	if s[len("2006-01-02T15")] != ':' || strings.Contains(s, ",") {
		return false
	}
	if strings.HasSuffix(s, "Z") {
		return true
	}
	offset := s[len(s)-len("07:00"):]
	return offset < "24" && offset[len("07:"):] < "60"
}
