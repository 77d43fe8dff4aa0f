package jsonscan

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

var seeds = []string{
	`{"attempt":1,"progressPct":45.5,"message":"on \u0069t \ud83d\ude00","x":[null,true,false,{"y":-0.5e+3}]}`, ` [ ] `, `{}`, `[[[]]]`, `"`,
	`"\`, `"\u12`,
	`{"a":1,}`, `[1,]`, `[,]`, `{"a"}`, `01`, `1.`, `-`, `1e`, `nul`, `true false`, "\"\x01\"", ``,
}

// Any JSON at all: the scanner must accept what encoding/json accepts.
func FuzzScanner(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := Scanner{Text: body}
		if got, want := s.Skip() && s.End(), json.Valid(body); got != want {
			t.Fatalf("scanner %v, encoding/json %v: %q", got, want, body)
		}
	})
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{
		"2025-01-15T10:05:00Z", "2024-02-29T23:59:59.999999999-23:59", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59+00:00",
		"2025-01-15T10:05:00.1234567890123Z", "2025-13-15T10:05:00Z", "2025-01-15T24:00:00Z", "2025-01-15T10:05:00+0000", "1900-02-29T00:00:00Z",
		"9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59.9999-00:00", "9998-12-31T23:59:59-23:59",
		"0001-01-01T00:00:00+23:59",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
			return // needs escapes as JSON, and is no time
		}
		var want v1.Time
		err := want.UnmarshalJSON([]byte(`"` + s + `"`))
		ms, ok := ParseTime([]byte(s))
		if ok != (err == nil) || ok && ms != want.UnixMilli() {
			t.Fatalf("%q: got %d %v, want %d %v", s, ms, ok, want.UnixMilli(), err)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "user_requested", "a\"b\\c\n\t\r\x00\x7f", "é😀\u2028", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		out := AppendString(nil, s)
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestStampWritesTimesLikeTheWire(t *testing.T) {
	var s Stamp
	for _, tt := range []time.Time{
		time.UnixMilli(0), time.UnixMilli(1), time.UnixMilli(1736935200000), time.UnixMilli(1736935200999),
		time.UnixMilli(1736935201000), time.UnixMilli(-1), time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC),
		time.Date(2025, 1, 15, 12, 0, 0, 5e6, time.FixedZone("x", 7200)),
	} {
		if got, want := string(s.Append(nil, tt)), tt.UTC().Format(`"2006-01-02T15:04:05.000Z"`); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestStringsAreCutWhole(t *testing.T) {
	const limit = 1024
	for name, unit := range map[string]string{
		"plain": "x", "two bytes": "é", "four bytes": "😀", "escape": `\n`, "unicode escape": `\u00e9`, "surrogates": `\ud83d\ude00`,
		"lone surrogate": `\ud83d`,
	} {
		for pad := range 13 {
			begin := strings.Repeat("a", pad)
			lit := []byte(`"` + begin + strings.Repeat(unit, limit) + `"`)
			cut := Truncate(lit, limit)
			inner := strings.TrimPrefix(string(cut[1:len(cut)-1]), begin)
			if strings.ReplaceAll(inner, unit, "") != "" || len(cut) > limit || len(cut) <= limit-len(unit) {
				t.Fatalf("%s: cut to %d bytes, or within a character: …%s", name, len(cut), cut[len(cut)-16:])
			}
			if whole := Truncate(cut, limit); &whole[0] != &cut[0] {
				t.Fatalf("%s: one that fits is cut", name)
			}
		}
	}
}

// Each byte is classified in the same way at any place in a string of any length.
func TestEachByteAtEachPlace(t *testing.T) {
	t.Parallel()
	for length := 1; length < 20; length++ {
		for at := range length {
			for c := range 256 {
				text := bytes.Repeat([]byte("n"), length)
				text[at] = byte(c)
				text = append(append([]byte{'"'}, text...), '"')
				s := Scanner{Text: text}
				lit, escaped, ok := s.Str()
				if want := json.Valid(text); (ok && s.End()) != want || want && (len(lit) != len(text) || escaped != (c == '\\')) {
					t.Fatalf("%q: %q %v %v, want %v", text, lit, escaped, ok, want)
				}
				s = Scanner{Text: text[:len(text)-1]} // it does not end
				if _, _, ok := s.Str(); ok && c != '"' {
					t.Fatalf("%q is a string", s.Text)
				}
			}
		}
	}
}

func BenchmarkStr(b *testing.B) {
	for _, n := range []int{8, 40, 420} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			text := []byte(`"` + strings.Repeat("x", n) + `",`)
			for b.Loop() {
				s := Scanner{Text: text}
				s.Str()
			}
		})
	}
}
