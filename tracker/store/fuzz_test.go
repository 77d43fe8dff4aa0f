package store

import (
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Whatever stands in the store, reading it ends in a value or a refusal.
func FuzzStored(f *testing.F) {
	for _, text := range []string{
		"acme/prod/q//mail///1768471200000/task_1/2000/run_1", "acme/prod/q/w/t/r/l/", "wkr_1/acme/prod/task_1#1.f3nc/2000/run_1/mark",
		"30000\t17\t\"user\"", "1\tw\t5\t\"x\"",
		"3:3:1000:2:60000", "1\t\tw\t1\t2\t3\tZOMBIE\tHEARTBEAT_TIMEOUT", "a/b/c#1.f", "task\tc\t\"reason\"", "", "////////////", "\t\t\t\t",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		(&Store{Keys: make([]*schema.ShardKeys, 16)}).WorkerShard(text)
	})
}

// A URL of Redis never shows its password in what is logged, however it is misspelt.
func FuzzRedisURL(f *testing.F) {
	for _, u := range []string{"redis://u:%s@h:1/0", "redis+cluster://u:%s@a:1,b:2", "redis+sentinel://h:1/main/0?username=u&password=%s",
		"rediss://:%s@h", "redis://h/0?sentinel_password=%s"} {
		f.Add(u, "geheim7")
	}
	f.Fuzz(func(t *testing.T, form, password string) {
		if len(password) < 6 || strings.ContainsAny(password, "@/?&#:%,=\x00 ") ||
			strings.Contains(strings.ReplaceAll(form, "%s", ""), password) || strings.Count(form, "%s") != 1 {
			return
		}
		at := strings.Index(form, "%s")
		behind, scheme := strings.HasPrefix(form[at+2:], "@"), strings.Index(form, "://")
		before := strings.HasSuffix(form[:at], "password=")
		if scheme < 0 || at < scheme || !(behind && strings.HasSuffix(form[:at], ":") && at > scheme+3) &&
			!(before && strings.ContainsAny(form[max(0, at-10):at-9], "?&")) {
			return // it is no password there
		}
		u := strings.Replace(form, "%s", password, 1)
		if got := redactURL(u); strings.Contains(got, password) {
			t.Fatalf("%q is shown as %q", u, got)
		}
		splitURL(u)
	})
}
