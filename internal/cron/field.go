package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// field is one of the seven fields of an expression.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on, three letters or in full; nil: none
	question bool     // ? means every value, as * does
	example  string
}

var fields = [...]field{
	{name: "seconds", min: 0, max: 59, example: "0,30"},
	{name: "minutes", min: 0, max: 59, example: "*/15"},
	{name: "hours", min: 0, max: 23, example: "9-17"},
	{name: "day of month", min: 1, max: 31, question: true, example: "1,15"},
	{name: "month", min: 1, max: 12, example: "JAN-MAR", names: []string{
		"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
	}},
	{name: "day of week", min: 1, max: 7, question: true, example: "MON-FRI", names: []string{
		"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
	}},
	{name: "year", min: 1970, max: 2100, example: "2030-2040"},
}

// Indexes of the fields.
const (
	second = iota
	minute
	hour
	dayOfMonth
	month
	dayOfWeek
	year
)

// values are the allowed values of a field, each as its distance from the minimum.
type values []bool

// bits returns a set with bit i set if value i is allowed; for up to 64 values.
func (v values) bits() (set uint64) {
	for i, is := range v {
		if is {
			set |= 1 << i
		}
	}
	return set
}

var ordinals = [...]string{"1st", "2nd", "3rd", "4th", "5th", "6th", "7th"}

// parse parses a field: a list of values, ranges and steps.
func (f *field) parse(text string) (values, error) {
	v := make(values, f.max-f.min+1)
	for part := range strings.SplitSeq(text, ",") {
		from, to, step, err := f.part(part)
		if err != nil {
			return nil, err
		}
		for n := from; n <= to; n += step {
			v[n-f.min] = true
		}
	}
	return v, nil
}

// part parses one part of a list: *, ?, a, a-b, and each of these but ? with /step.
func (f *field) part(text string) (from, to, step int, err error) {
	span, every, stepped := strings.Cut(text, "/")
	first, last, isRange := strings.Cut(span, "-")
	switch {
	case text == "":
		return 0, 0, 0, fmt.Errorf("a value is missing")
	case span == "*":
		from, to = f.min, f.max
	case span == "?" && !f.question:
		return 0, 0, 0, fmt.Errorf("? is for the two day fields; use *")
	case span == "?" && stepped:
		return 0, 0, 0, fmt.Errorf("? takes no step; use *")
	case span == "?":
		from, to = f.min, f.max
	default:
		if from, err = f.value(first); err != nil {
			return 0, 0, 0, err
		}
		if to = from; stepped {
			to = f.max
		}
		if isRange {
			if to, err = f.value(last); err != nil {
				return 0, 0, 0, err
			}
		}
	}
	if from > to {
		return 0, 0, 0, fmt.Errorf("a range does not go past the end; write %s-%d,%d-%s", first, f.max, f.min, last)
	}
	step = 1
	if stepped {
		step, err = f.step(every)
	}
	return from, to, step, err
}

func (f *field) step(text string) (int, error) {
	n, ok := number(text)
	if most := f.max - f.min + 1; !ok || n < 1 || n > most {
		return 0, fmt.Errorf("the step behind / is a number from 1 to %d, not %q", most, clip(text))
	}
	return n, nil
}

// value parses a number or a name.
func (f *field) value(text string) (int, error) {
	for i, name := range f.names {
		if lower := strings.ToLower(text); lower == name || lower == name[:3] {
			return f.min + i, nil
		}
	}
	n, ok := number(text)
	switch {
	case !ok && f.names != nil:
		return 0, fmt.Errorf("%q is neither a number nor a name such as %s", clip(text), strings.ToUpper(f.names[0][:3]))
	case !ok:
		return 0, fmt.Errorf("%q is no number", clip(text))
	case (n < f.min || n > f.max) && f.name == fields[dayOfWeek].name:
		return 0, fmt.Errorf("%d is not within 1–7; 1 is SUN and 7 is SAT", n)
	case n < f.min || n > f.max:
		return 0, fmt.Errorf("%d is not within %d–%d", n, f.min, f.max)
	}
	return n, nil
}

// number parses digits only: no sign, and at most as many as a year has.
func number(text string) (int, bool) {
	if text == "" || len(text) > 4 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// clip shortens a user's text to what a message may show.
func clip(text string) string {
	if len(text) > 32 {
		return text[:32]
	}
	return text
}

// wrong returns why the field at a position is refused.
func (f *field) wrong(position int, text string, why error) error {
	return &Error{Field: f.name, Message: fmt.Sprintf("has %q as %s, its %s field: %v; for example %q",
		clip(text), f.name, ordinals[position], why, f.example)}
}

func has(set uint64, n int) bool { return set>>n&1 == 1 }

// nextIn returns the smallest value of a set from a bound on; 64: none.
func nextIn(set uint64, bound int) int { return bits.TrailingZeros64(set >> bound << bound) }

// lastIn returns the largest value of a set up to a bound; -1: none.
func lastIn(set uint64, bound int) int { return bits.Len64(set&(1<<(bound+1)-1)) - 1 }

// count returns how many of the values below a bound are in the set.
func count(set uint64, below int) int { return bits.OnesCount64(set & (1<<below - 1)) }
