package output

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Mood is how a cell is to be taken.
type Mood uint8

const (
	Plain Mood = iota
	Good
	Doubtful
	Bad
	Faint
)

// Cell is one value of a table.
type Cell struct {
	Text string
	Mood Mood
}

// Text is a cell without a mood.
func Text(s string) Cell { return Cell{Text: s} }

// Number is a cell with a number.
func Number[T ~int | ~int64](n T) Cell { return Cell{Text: fmt.Sprint(n)} }

// Optional is the text that a pointer points to.
func Optional[T ~string](s *T) Cell {
	if s == nil {
		return Cell{}
	}
	return Cell{Text: string(*s)}
}

// moods are those of the words of the API.
var moods = map[string]Mood{
	"RUNNING": Good, "SUCCEEDED": Good, "ONLINE": Good, "FRESH": Good, "CREATED": Good,
	"DISPATCHED": Plain, "QUEUED": Plain, "SCHEDULED": Plain,
	"LATE": Doubtful, "DRAINING": Doubtful, "CANCELLED": Faint, "SKIPPED": Doubtful,
	"FAILED": Bad, "LOST": Bad, "OFFLINE": Faint, "DEAD": Bad, "REFUSED": Bad,
}

// Word is a cell with a word of the API, in the mood that goes with it.
func Word[T ~string](word T) Cell { return Cell{Text: string(word), Mood: moods[string(word)]} }

// SeverityMoods are those of findings.
var SeverityMoods = map[v1.Severity]Mood{v1.SeverityOK: Good, v1.SeverityWarn: Doubtful, v1.SeverityFail: Bad}

// Flag is a cell that marks what is true and should not be.
func Flag(is bool) Cell {
	if !is {
		return Cell{}
	}
	return Cell{Text: "yes", Mood: Doubtful}
}

// Parenthesized returns a text in parentheses after a space, or nothing for nil.
func Parenthesized(text *string) string {
	if text == nil {
		return ""
	}
	return " (" + Clean(*text) + ")"
}

// Age is how long ago a time was.
func Age(at, now time.Time) Cell {
	if at.IsZero() {
		return Cell{}
	}
	return Cell{Text: Duration(max(0, now.Sub(at)))}
}

// Duration writes a length of time as short as possible: 350ms, 12s, 3m20s, 5h, 2d4h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return twoParts(int(d.Minutes()), "m", int(d.Seconds())%60, "s")
	case d < 48*time.Hour:
		return twoParts(int(d.Hours()), "h", int(d.Minutes())%60, "m")
	}
	return twoParts(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

func twoParts(a int, aUnit string, b int, bUnit string) string {
	if b == 0 {
		return fmt.Sprintf("%d%s", a, aUnit)
	}
	return fmt.Sprintf("%d%s%d%s", a, aUnit, b, bUnit)
}

// Milliseconds is Duration of a number of milliseconds.
func Milliseconds[T ~int | ~int64](ms T) string {
	return Duration(time.Duration(ms) * time.Millisecond)
}

// Clean takes out of a text what a terminal would act on: names and messages are written by workers.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
}

// Count writes a number with its noun: 1 task, 2,345 tasks.
func Count[T ~int | ~int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(int64(n)) + " " + noun + "s"
}

// Grouped writes a number with commas between thousands.
func Grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Bytes writes a size in the unit in which it is short.
func Bytes(n int64) string {
	size, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size < 1024 {
			break
		}
		size, unit = size/1024, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, unit)
}
