package schema

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// PackPolicy returns maxAttempts:maxLosses:initialMs:multiplier:maxMs; UnpackPolicy parses it.
func PackPolicy(p *model.RetryPolicy) string {
	return strconv.Itoa(p.MaxAttempts) + ":" + strconv.Itoa(p.MaxLosses) + ":" + strconv.FormatInt(model.Millis(p.InitialBackoff), 10) +
		":" + strconv.FormatFloat(p.Multiplier, 'f', -1, 64) + ":" + strconv.FormatInt(model.Millis(p.MaxBackoff), 10)
}

// UnpackPolicy parses the result of PackPolicy, and returns nil for anything else.
func UnpackPolicy(s string) *model.RetryPolicy {
	p := strings.Split(s, ":")
	if len(p) != 5 {
		return nil
	}
	multiplier, _ := strconv.ParseFloat(p[3], 64)
	return &model.RetryPolicy{
		MaxAttempts: Atoi(p[0]), MaxLosses: Atoi(p[1]), InitialBackoff: Duration(p[2], 0), Multiplier: multiplier, MaxBackoff: Duration(p[4], 0),
	}
}

// LabelsHash returns the same hash for equal labels, part of a task's class; "" for no labels.
func LabelsHash(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(model.PackLabels(labels))) // keys come out sorted
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

// Flag returns a script's argument for a boolean: "1" or "".
func Flag(yes bool) string {
	if yes {
		return "1"
	}
	return ""
}

// MillisOrEmpty returns ms since the epoch, "" for the zero time.
func MillisOrEmpty(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// ParseMillis parses milliseconds since the epoch; anything else is the zero time.
func ParseMillis(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Duration parses ms; "" is `absent`.
func Duration(msText string, absent time.Duration) time.Duration {
	if msText == "" {
		return absent
	}
	n, _ := strconv.ParseInt(msText, 10, 64)
	return time.Duration(n) * time.Millisecond
}

// Atoi parses a number; anything else is 0.
func Atoi(s string) int {
	if s == "" {
		return 0 // most fields are absent: avoid creating an error
	}
	n, _ := strconv.Atoi(s)
	return n
}

// ParseInt is Atoi for longer numbers.
func ParseInt(s string) int64 {
	if s == "" {
		return 0
	}
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// Raw returns JSON text as a value, nil for "".
func Raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// Unmarshal parses stored JSON; "" leaves `into` unchanged.
func Unmarshal(s string, into any) {
	if s != "" {
		_ = json.Unmarshal([]byte(s), into) // this package wrote it, so it is JSON
	}
}
