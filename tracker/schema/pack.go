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

// LabelsHash is the same for equal labels: those of one class are told by it. No labels have none.
func LabelsHash(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(model.PackLabels(labels))) // keys come out sorted
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

func MillisOrEmpty(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

func PackPolicy(p *model.RetryPolicy) string {
	return strconv.Itoa(p.MaxAttempts) + ":" + strconv.Itoa(p.MaxLosses) + ":" + strconv.FormatInt(model.Millis(p.InitialBackoff), 10) +
		":" + strconv.FormatFloat(p.Multiplier, 'f', -1, 64) + ":" + strconv.FormatInt(model.Millis(p.MaxBackoff), 10)
}

// TaskRef is a task and the fields of it that never change and name its other keys.
type TaskRef struct {
	Scope     model.Scope
	ID        string
	Shard     int
	Run       string
	TimeoutMs string
	Exists    bool
}

func (r *TaskRef) Resolve(run, timeoutMs string) {
	r.Exists = timeoutMs != ""
	r.TimeoutMs = timeoutMs
	if r.Run = run; run == "" {
		r.Run = RunOf(r.ID)
	}
}

func Atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func Raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func Unmarshal(s string, into any) {
	if s != "" {
		_ = json.Unmarshal([]byte(s), into) // written by this package, so it is JSON
	}
}

func Duration(msText string, absent time.Duration) time.Duration {
	if msText == "" {
		return absent
	}
	n, _ := strconv.ParseInt(msText, 10, 64)
	return time.Duration(n) * time.Millisecond
}

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

func ParseInt(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
