package store

import (
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/storedtest"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Reading any stored bytes ends in a value or an error.
func FuzzStored(f *testing.F) {
	storedtest.Read(f, func(t *testing.T, text string) {
		(&Keyspace{Keys: make([]*schema.ShardKeys, 16)}).WorkerShard(text)
	})
}

// No Redis URL, however misspelt, shows its password in a log.
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
			return // it is not a password there
		}
		u := strings.Replace(form, "%s", password, 1)
		if got := redactURL(u); strings.Contains(got, password) {
			t.Fatalf("%q is shown as %q", u, got)
		}
		splitURL(u)
	})
}
