package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Any file gives either a configuration within its bounds or a reported mistake.
func FuzzFile(f *testing.F) {
	for _, text := range []string{"shards: 16\nredis: redis://x\n", "roles: [api, sweeper]\n", "a: &a b\nc: *a\n", "---\n---\n", "{",
		"shards: !!int 5", "? x\n: y", "redis: |\n  redis://x", "tls-cert-file: /a\n"} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "lubdub.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Load(Input{File: path})
		if err != nil {
			return
		}
		for _, field := range Fields() {
			if err := field.check(&l.Config); err != nil {
				t.Fatalf("%q: %s: %v", text, field.Name, err)
			}
		}
	})
}

// A URL is never printed with what is in a password's place.
func FuzzRedactURL(f *testing.F) {
	f.Add("redis://u:", "geheim7", "@h:1/0")
	f.Add("redis+sentinel://h/main?password=", "geheim7", "&x=y")
	f.Fuzz(func(t *testing.T, before, password, after string) {
		user := strings.HasPrefix(after, "@") && strings.HasSuffix(before, ":") && strings.Contains(strings.TrimSuffix(before, ":"), "://") &&
			!strings.Contains(before, "?")
		parameter := (strings.HasSuffix(before, "?password=") || strings.HasSuffix(before, "&password=")) && strings.Contains(before, "://") &&
			(after == "" || after[0] == '&')
		if len(password) < 6 || strings.ContainsAny(password, "@/?&#:=") || strings.Contains(before+"|"+after, password) || !user && !parameter ||
			!strings.Contains(before, "://") {
			return
		}
		if got := RedactURL(before + password + after); strings.Contains(got, password) {
			t.Fatalf("%q is shown as %q", before+password+after, got)
		}
	})
}

func FuzzRoles(f *testing.F) {
	f.Add("api,sweeper")
	f.Add(",api ,")
	f.Fuzz(func(t *testing.T, text string) {
		var r, again Roles
		if r.UnmarshalText([]byte(text)) != nil {
			return
		}
		if err := again.UnmarshalText([]byte(r.String())); err != nil || again != r {
			t.Fatalf("%q became %+v, then %+v (%v)", text, r, again, err)
		}
	})
}
