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

// PackPolicy writes maxAttempts:maxLosses:initialMs:multiplier:maxMs; UnpackPolicy reads it.
func PackPolicy(p *model.RetryPolicy) string {
	return strconv.Itoa(p.MaxAttempts) + ":" + strconv.Itoa(p.MaxLosses) + ":" + strconv.FormatInt(model.Millis(p.InitialBackoff), 10) +
		":" + strconv.FormatFloat(p.Multiplier, 'f', -1, 64) + ":" + strconv.FormatInt(model.Millis(p.MaxBackoff), 10)
}

// UnpackPolicy returns nil for what PackPolicy has not written.
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

// LabelsHash returns the same hash for equal labels, by which those of one class are recognized. No labels have none.
func LabelsHash(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(model.PackLabels(labels))) // keys come out sorted
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

// Flag is a script's argument for yes and no: "1" or "".
func Flag(yes bool) string {
	if yes {
		return "1"
	}
	return ""
}

// MillisOrEmpty returns ms since the epoch; the zero time is "".
func MillisOrEmpty(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// ParseMillis reads milliseconds since the epoch; an empty string is the zero time.
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

// Duration reads ms; absent is what "" stands for.
func Duration(msText string, absent time.Duration) time.Duration {
	if msText == "" {
		return absent
	}
	n, _ := strconv.ParseInt(msText, 10, 64)
	return time.Duration(n) * time.Millisecond
}

// Atoi reads a number; anything else is 0.
func Atoi(s string) int {
	if s == "" {
		return 0 // without an error to make: most fields are absent
	}
	n, _ := strconv.Atoi(s)
	return n
}

// ParseInt does what Atoi does for longer numbers.
func ParseInt(s string) int64 {
	if s == "" {
		return 0
	}
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// Raw returns JSON text as a value; "" is nil.
func Raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// Unmarshal reads JSON that was written here; "" leaves `into` as it is.
func Unmarshal(s string, into any) {
	if s != "" {
		_ = json.Unmarshal([]byte(s), into) // written by this package, so it is JSON
	}
}
