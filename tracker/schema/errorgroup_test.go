package schema

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// Errors that differ only in numbers, ids, addresses, times or later lines are of one group.
func TestErrorGroup(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		``:                           "",
		`{}`:                         "",
		`{"category":"TIMEOUT"}`:     "TIMEOUT",
		`{"message":"no such user"}`: "no such user",
		`{"category":"USER_CODE","message":"no user 42 in shard-7"}`:                                     "USER_CODE no user … in shard-…",
		`{"category":"USER_CODE","message":"task_9f3a of 6ba7b810-9dad-11d1-80b4-00c04fd430c8 is gone"}`: "USER_CODE … of … is gone",
		`{"category":"USER_CODE","message":"dial tcp 10.0.0.7:5432: refused at 2026-01-02T03:04:05.6Z"}`: "USER_CODE dial tcp …: refused at …",
		`{"category":"USER_CODE","message":"  KeyError: 'name'\n  File \"a.py\", line 3"}`:               "USER_CODE KeyError: 'name'",
		`{"category":"USER_CODE","message":"a\tb\u0000  c"}`:                                             "USER_CODE a b c",
	} {
		if got := ErrorGroup(json.RawMessage(given)); got != want {
			t.Errorf("%s: %q instead of %q", given, got, want)
		}
	}
	long, _ := json.Marshal(map[string]string{"message": strings.Repeat("ü", 10_000)})
	if got := ErrorGroup(long); len(got) > longestErrorGroup || !utf8.ValidString(got) || !strings.HasPrefix(got, "üü") {
		t.Errorf("a long message: %q", got)
	}
}

// An entry of a failure is read with its error, which may have slashes; one of a verdict has none.
func TestParseVerdict(t *testing.T) {
	t.Parallel()
	v, ok := ParseVerdict("1700000000000/t/2/WORKER_REPORTED/mail/letter/wkr_1/USER_CODE a/b")
	if !ok || v.TaskID != "t" || v.Attempt != 2 || v.Queue != "mail" || v.Type != "letter" || v.WorkerID != "wkr_1" ||
		v.Error != "USER_CODE a/b" {
		t.Errorf("%+v, %v", v, ok)
	}
	if v, ok := ParseVerdict("1700000000000/t/2/WORKER_LOST///wkr_1"); !ok || v.WorkerID != "wkr_1" || v.Error != "" {
		t.Errorf("%+v, %v", v, ok)
	}
	if v, ok := ParseVerdict("1700000000000/t/2/WORKER_LOST//"); ok {
		t.Errorf("%+v", v)
	}
}
