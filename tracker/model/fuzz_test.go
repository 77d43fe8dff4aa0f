package model

import (
	"encoding/json"
	"strings"
	"testing"
)

// An accepted task is within the bounds that the scripts rely on.
func FuzzNewTask(f *testing.F) {
	f.Add([]byte(`{"Scope":{"Tenant":"a","Workspace":"b"},"Queue":"q","Retry":{"MaxAttempts":3,"Multiplier":2}}`))
	f.Add([]byte(`{"Scope":{"Tenant":"a","Workspace":"b"},"HeartbeatTimeout":1,"Labels":{"a":"b"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var n NewTask
		if json.Unmarshal(raw, &n) != nil || n.Validate(validateNow) != nil {
			return
		}
		if !ValidID(n.Scope.Tenant) || n.TaskID != "" && !ValidID(n.TaskID) || n.HeartbeatTimeout < 0 || n.HeartbeatTimeout > MaxTimeout ||
			n.HeartbeatTimeout != 0 && n.HeartbeatTimeout < MinTimeout ||
			n.HeartbeatInterval <= 0 || n.CancelGrace <= 0 || n.Retry != nil && (n.Retry.MaxAttempts < 1 || n.Retry.Multiplier < 1) ||
			n.HeartbeatTimeout != 0 && n.HeartbeatTimeout != RoundTimeout(n.HeartbeatTimeout) {
			t.Fatalf("%s became %+v", raw, n)
		}
	})
}

// An accepted probe URL is plain http or https, to a host, without a user.
func FuzzProbeURL(f *testing.F) {
	for _, u := range []string{"http://10.0.0.7:8081/healthz", "https://u:p@h/", "file:///etc/passwd", "http://", "http://h#x", "HTTP://h",
		"http://[::1]/", "http://h\r\nX: y/"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) {
		low := strings.ToLower(u)
		if u != "" && checkProbeURL(u) == nil && (!strings.HasPrefix(low, "http://") && !strings.HasPrefix(low, "https://") ||
			strings.ContainsAny(u, "\r\n\x00")) {
			t.Fatalf("%q is taken", u)
		}
	})
}
