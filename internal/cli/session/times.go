package session

import (
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ParseStart reads where to begin: how long ago becomes a time, all else stays.
func (s *Session) ParseStart(text string) string {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return FormatTime(v1.At(s.Now().Add(-ago)))
	}
	return text
}

// ParseTime reads a time: one in RFC 3339, or how long ago it was.
func (s *Session) ParseTime(flag, text string) (v1.Time, error) {
	if text == "" {
		return v1.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return v1.At(s.Now().Add(-ago)), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return v1.Time{}, exit.Misusef("--%s %q is neither how long ago, such as 15m, nor a time such as 2026-01-31T12:00:00Z", flag, text)
	}
	return v1.At(at), nil
}

// FormatTime writes a time as the API does; empty: none.
func FormatTime(t v1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(v1.TimeLayout)
}

// Milliseconds is a duration as requests have it; nil stays nil.
func Milliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
