package model

import (
	"strings"
	"testing"
)

// The examples and rules of the W3C recommendation: invalid values are ignored, and of newer versions the known part is kept.
func TestParseTraceparent(t *testing.T) {
	t.Parallel()
	const ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
	for in, want := range map[string]string{
		"00-" + ids + "-01": "00-" + ids + "-01", "00-" + ids + "-00": "00-" + ids + "-00", "00-" + ids + "-03": "00-" + ids + "-03",
		"cc-" + ids + "-01": "00-" + ids + "-01", "cc-" + ids + "-09-what-the-future-brings": "00-" + ids + "-01",
		"01-" + ids + "-f2": "00-" + ids + "-00",
	} {
		if got, ok := ParseTraceparent(in); !ok || got != want {
			t.Errorf("%q is read as %q, %v; want %q", in, got, ok, want)
		}
	}
	for _, bad := range []string{
		"", "00", "00-" + ids, "00-" + ids + "-0", "00-" + ids + "-01-more", "00-" + ids + "-01.", "cc-" + ids + "-01.more", "ff-" + ids + "-01",
		"0-" + ids + "-01x", "00-" + strings.ToUpper(ids) + "-01", "00-" + ids + "-0X", "0x-" + ids + "-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01", " 00-" + ids + "-01", "00_" + ids + "-01",
		"cc-" + ids + "-01-" + strings.Repeat("x", 500),
	} {
		if got, ok := ParseTraceparent(bad); ok {
			t.Errorf("%q is taken as %q", bad, got)
		}
	}
}
