package store

import "testing"

func TestRedactURL(t *testing.T) {
	for in, want := range map[string]string{
		"redis://127.0.0.1:6379/0":           "redis://127.0.0.1:6379/0",
		"redis://u:secret@h:1/0":             "redis://u:***@h:1/0",
		"redis+sentinel://:p@ss@h:1,g:2/m/0": "redis+sentinel://:***@h:1,g:2/m/0",
	} {
		if got := redactURL(in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}
