package cron

import (
	"fmt"
	"slices"
	"strings"
	"time"

	gocron "github.com/netresearch/go-cron"
)

// MaxBytes is how long an expression may be; a list of all sixty minutes has 170.
const MaxBytes = 512

// Example is a right expression.
const Example = "0 30 9 * * MON-FRI"

// Error says what is wrong with an expression.
type Error struct {
	Field   string // such as "day of week"; "": the whole expression
	Message string // goes on from the name that the expression has where it was given
}

func (e *Error) Error() string { return "cron " + e.Message }

// Schedule is a parsed expression. It never changes, so its methods may be called from any goroutine.
type Schedule struct{ spec *gocron.SpecSchedule }

// parser reads what translate has written. It looks as far as any fire may lie away.
var parser = gocron.MustNewParser(gocron.Second | gocron.Minute | gocron.Hour | gocron.Dom | gocron.Month | gocron.Dow | gocron.Year).
	WithMaxSearchYears(fields[year].max - fields[year].min)

// Parse reads "sec min hour dom month dow [year]", all in UTC. The error is an *Error.
func Parse(text string) (*Schedule, error) {
	if len(text) > MaxBytes {
		return nil, &Error{Message: fmt.Sprintf("has %d bytes; use at most %d", len(text), MaxBytes)}
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
	switch n := len(parts); {
	case n > 0 && (strings.HasPrefix(parts[0], "@") || strings.Contains(parts[0], "=")):
		return nil, &Error{Message: fmt.Sprintf("begins with %q; shorthands and time zones are not taken, all is UTC, and right would be "+
			"for example %q", clip(parts[0]), Example)}
	case n != len(fields) && n != len(fields)-1:
		return nil, &Error{Message: fmt.Sprintf("has %d fields; use six or seven, seconds minutes hours day-of-month month day-of-week [year], "+
			"for example %q", n, Example)}
	}
	translated, err := translate(parts)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(translated)
	if err != nil {
		return nil, &Error{Message: fmt.Sprintf("%q cannot be read; right would be for example %q", clip(text), Example)}
	}
	return &Schedule{parsed.(*gocron.SpecSchedule)}, nil
}

// translate writes an expression as go-cron reads it: values and ranges only, Sunday as 0, and always a year.
func translate(parts []string) (string, error) {
	out := make([]string, len(fields))
	out[year] = "*"
	for i, text := range parts {
		v, err := fields[i].parse(text)
		if err != nil {
			return "", err
		}
		shift := 0
		if i == dayOfWeek {
			shift = -1
		}
		out[i] = fields[i].text(v, shift)
	}
	return strings.Join(out, " "), nil
}

// Next returns the first fire after a time; zero: none is to come.
func (s *Schedule) Next(after time.Time) time.Time {
	if first := time.Date(fields[year].min, 1, 1, 0, 0, 0, 0, time.UTC); after.Before(first) {
		after = first.Add(-time.Second)
	}
	next := s.spec.Next(after.UTC())
	if next.Year() < fields[year].min || next.Year() > fields[year].max { // go-cron says year 1 where there is none
		return time.Time{}
	}
	return next
}

// Newest returns the newest fires within (after, upTo], at most so many, the oldest of them first.
func (s *Schedule) Newest(after, upTo time.Time, limit int) []time.Time {
	var fires []time.Time
	before := s.within(upTo).Truncate(time.Second).Add(time.Second)
	for len(fires) < limit {
		before = s.spec.Prev(before)
		if before.Year() < fields[year].min || !before.After(after) {
			break
		}
		fires = append(fires, before)
	}
	slices.Reverse(fires)
	return fires
}

// within returns the time, and of times behind the last year its end.
func (s *Schedule) within(t time.Time) time.Time {
	if end := time.Date(fields[year].max, 12, 31, 23, 59, 59, 0, time.UTC); t.After(end) {
		return end
	}
	return t.UTC()
}

// Count returns how many fires lie within (after, upTo]. It costs a look at each day.
func (s *Schedule) Count(after, upTo time.Time) int64 {
	if first := time.Date(fields[year].min, 1, 1, 0, 0, 0, 0, time.UTC); after.Before(first) {
		after = first.Add(-time.Second)
	}
	after, upTo = after.UTC(), s.within(upTo)
	if !upTo.After(after) {
		return 0
	}
	perDay := count(s.spec.Hour, 24) * count(s.spec.Minute, 60) * count(s.spec.Second, 60)
	var total int64
	last := dayOf(upTo)
	for day := dayOf(after); !day.After(last); day = day.AddDate(0, 0, 1) {
		if !s.onDay(day) {
			continue
		}
		n := perDay
		if day.Equal(last) {
			n = s.upTo(upTo)
		}
		if day.Equal(dayOf(after)) {
			n -= s.upTo(after)
		}
		total += int64(n)
	}
	return total
}

func dayOf(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }

// onDay reports whether there are fires on a day.
func (s *Schedule) onDay(day time.Time) bool {
	_, of := s.spec.Year[day.Year()]
	return (of || s.spec.Year == nil) && s.spec.Month>>int(day.Month())&1 == 1 &&
		s.spec.Dom>>day.Day()&1 == 1 && s.spec.Dow>>int(day.Weekday())&1 == 1
}

// upTo counts the fires of a day up to a time in it, as if the day had any.
func (s *Schedule) upTo(t time.Time) int {
	seconds, minutes := count(s.spec.Second, 60), count(s.spec.Minute, 60)
	n := count(s.spec.Hour, t.Hour()) * minutes * seconds
	if s.spec.Hour>>t.Hour()&1 == 0 {
		return n
	}
	n += count(s.spec.Minute, t.Minute()) * seconds
	if s.spec.Minute>>t.Minute()&1 == 0 {
		return n
	}
	return n + count(s.spec.Second, t.Second()+1)
}
