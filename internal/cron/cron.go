package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxBytes is the longest expression; a list of all sixty minutes has 170 bytes.
const MaxBytes = 512

// Example is a valid expression.
const Example = "0 30 9 * * MON-FRI"

// Error describes what is wrong with an expression.
type Error struct {
	Field   string // such as "day of week"; "": the whole expression
	Message string // continues a sentence that begins with the expression's name
}

func (e *Error) Error() string { return "cron " + e.Message }

// Schedule is a parsed expression. It never changes, so its methods may be called from any goroutine.
type Schedule struct {
	allowed [year]uint64 // by field, a bit for each value; Sunday is 1
	years   values
}

// Parse parses "[sec] min hour dom month dow" or "sec min hour dom month dow year", all in UTC. Five fields fire at second 0; they are
// accepted if they mean the same as in crontab. The error is an *Error.
func Parse(text string) (*Schedule, error) {
	if len(text) > MaxBytes {
		return nil, &Error{Message: fmt.Sprintf("has %d bytes; use at most %d", len(text), MaxBytes)}
	}
	parts := split(text)
	switch n := len(parts); {
	case n > 0 && (strings.HasPrefix(parts[0], "@") || strings.Contains(parts[0], "=")):
		return nil, &Error{Message: fmt.Sprintf("begins with %q; shorthands and time zones are not supported, and all times are UTC; "+
			"for example %q", clip(parts[0]), Example)}
	case n < crontabFields || n > len(fields):
		return nil, &Error{Message: fmt.Sprintf("has %d fields; use five to seven, [seconds] minutes hours day-of-month month day-of-week "+
			"[year], for example %q", n, Example)}
	}
	first := 0
	if len(parts) == crontabFields {
		first = minute
	}
	s := &Schedule{years: slices.Repeat(values{true}, fields[year].max-fields[year].min+1)}
	s.allowed[second] = 1
	for i, part := range parts {
		f := &fields[first+i]
		v, err := f.parse(part)
		if err == nil && first == minute && first+i == dayOfWeek {
			err = checkCrontabDays(parts[i-2], part)
		}
		switch {
		case err != nil:
			return nil, f.wrong(i, part, err)
		case first+i == year:
			s.years = v
		default:
			s.allowed[first+i] = v.bits() << f.min
		}
	}
	return s, nil
}

// WithSeconds returns an expression that Parse has accepted with at least six fields, which replicas of older versions need.
func WithSeconds(text string) string {
	if len(split(text)) == crontabFields {
		return "0 " + text
	}
	return text
}

func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
}

// crontabFields is the number of fields in crontab, which has no seconds.
const crontabFields = 5

// checkCrontabDays refuses days that have another meaning in crontab.
func checkCrontabDays(ofMonth, ofWeek string) error {
	everyDay := func(text string) bool { return text == "*" || text == "?" }
	days, _, _ := strings.Cut(ofWeek, "/")
	switch {
	case strings.ContainsAny(days, "0123456789"):
		return errors.New("in five fields days are names, since crontab counts them from SUN = 0, but six fields count from SUN = 1")
	case !everyDay(ofMonth) && !everyDay(ofWeek):
		return errors.New("crontab fires on days that match either day field, but six fields fire on days that match both; " +
			"write * for one of them, or six fields")
	}
	return nil
}

var (
	firstDay = time.Date(fields[year].min, 1, 1, 0, 0, 0, 0, time.UTC)
	lastDay  = time.Date(fields[year].max, 12, 31, 0, 0, 0, 0, time.UTC)
)

// Next returns the first fire after a time; zero: there is none.
func (s *Schedule) Next(after time.Time) time.Time {
	from := after.UTC().Truncate(time.Second).Add(time.Second)
	if from.Before(firstDay) {
		from = firstDay
	}
	hour, minute, second := from.Clock()
	for day := dayOf(from); !day.After(lastDay); day = day.AddDate(0, 0, 1) {
		if !s.inMonth(day) {
			day = time.Date(day.Year(), day.Month()+1, 0, 0, 0, 0, 0, time.UTC)
		} else if s.onDay(day) {
			if at, ok := s.firstAt(hour, minute, second); ok {
				return day.Add(at)
			}
		}
		hour, minute, second = 0, 0, 0
	}
	return time.Time{}
}

// firstAt returns the first fire of a day at or after a time of the day.
func (s *Schedule) firstAt(h, m, sec int) (time.Duration, bool) {
	hours, minutes, seconds := s.allowed[hour], s.allowed[minute], s.allowed[second]
	if has(hours, h) && has(minutes, m) && nextIn(seconds, sec) < 60 {
		return clock(h, m, nextIn(seconds, sec)), true
	}
	if has(hours, h) && nextIn(minutes, m+1) < 60 {
		return clock(h, nextIn(minutes, m+1), nextIn(seconds, 0)), true
	}
	h = nextIn(hours, h+1)
	return clock(h, nextIn(minutes, 0), nextIn(seconds, 0)), h < 24
}

// lastAt returns the last fire of a day at or before a time of the day.
func (s *Schedule) lastAt(h, m, sec int) (time.Duration, bool) {
	hours, minutes, seconds := s.allowed[hour], s.allowed[minute], s.allowed[second]
	if has(hours, h) && has(minutes, m) && lastIn(seconds, sec) >= 0 {
		return clock(h, m, lastIn(seconds, sec)), true
	}
	if has(hours, h) && lastIn(minutes, m-1) >= 0 {
		return clock(h, lastIn(minutes, m-1), lastIn(seconds, 59)), true
	}
	h = lastIn(hours, h-1)
	return clock(h, lastIn(minutes, 59), lastIn(seconds, 59)), h >= 0
}

func clock(h, m, s int) time.Duration {
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
}

// Newest returns the newest fires within (after, upTo], at most limit, oldest first.
func (s *Schedule) Newest(after, upTo time.Time, limit int) []time.Time {
	var fires []time.Time
	before := s.within(upTo)
	hour, minute, second := before.Clock()
	for day := dayOf(before); !day.Before(firstDay) && len(fires) < limit; day = day.AddDate(0, 0, -1) {
		if day.Add(24 * time.Hour).Before(after) {
			break
		}
		if !s.inMonth(day) {
			day = time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC)
		} else if s.onDay(day) {
			at, ok := s.lastAt(hour, minute, second)
			for ok && len(fires) < limit && day.Add(at).After(after) {
				fires = append(fires, day.Add(at))
				at -= time.Second
				if ok = at >= 0; ok {
					at, ok = s.lastAt(int(at.Hours()), int(at.Minutes())%60, int(at.Seconds())%60)
				}
			}
		}
		hour, minute, second = 23, 59, 59
	}
	slices.Reverse(fires)
	return fires
}

// within returns the time, or the end of the last year if the time is after that.
func (s *Schedule) within(t time.Time) time.Time {
	if end := lastDay.Add(24*time.Hour - time.Second); t.After(end) {
		return end
	}
	return t.UTC()
}

// Count returns the number of fires within (after, upTo]. It checks each day.
func (s *Schedule) Count(after, upTo time.Time) int64 {
	if after.Before(firstDay) {
		after = firstDay.Add(-time.Second)
	}
	after, upTo = after.UTC(), s.within(upTo)
	if !upTo.After(after) {
		return 0
	}
	perDay := count(s.allowed[hour], 24) * count(s.allowed[minute], 60) * count(s.allowed[second], 60)
	var total int64
	last := dayOf(upTo)
	for day := dayOf(after); !day.After(last); day = day.AddDate(0, 0, 1) {
		if !s.onDay(day) {
			continue
		}
		n := perDay
		if day.Equal(last) {
			n = s.countUpTo(upTo)
		}
		if day.Equal(dayOf(after)) {
			n -= s.countUpTo(after)
		}
		total += int64(n)
	}
	return total
}

func dayOf(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }

// inMonth reports whether there may be fires in the month of a day.
func (s *Schedule) inMonth(day time.Time) bool {
	n := day.Year() - fields[year].min
	return n >= 0 && s.years[n] && has(s.allowed[month], int(day.Month()))
}

// onDay reports whether there are fires on a day.
func (s *Schedule) onDay(day time.Time) bool {
	return s.inMonth(day) && has(s.allowed[dayOfMonth], day.Day()) && has(s.allowed[dayOfWeek], int(day.Weekday())+1)
}

// countUpTo counts the fires from the start of a day up to a time in it, if the schedule fires on that day.
func (s *Schedule) countUpTo(t time.Time) int {
	seconds, minutes := count(s.allowed[second], 60), count(s.allowed[minute], 60)
	n := count(s.allowed[hour], t.Hour()) * minutes * seconds
	if !has(s.allowed[hour], t.Hour()) {
		return n
	}
	n += count(s.allowed[minute], t.Minute()) * seconds
	if !has(s.allowed[minute], t.Minute()) {
		return n
	}
	return n + count(s.allowed[second], t.Second()+1)
}
