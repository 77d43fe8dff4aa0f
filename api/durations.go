package api

import (
	"fmt"
	"time"
)

// durations reads numbers of milliseconds or seconds and keeps the first refusal. In a request every one must
// be said positive: zero means "not said" inside.
type durations struct{ err error }

// longest is more than every bound of the domain and far from overflowing.
const longest = 1 << 40

func (d *durations) positive(field string, v *int64, unit time.Duration) time.Duration {
	if v != nil && *v == 0 {
		d.refuse(field, *v, "must be positive; leave it out for the default")
		return 0
	}
	return d.some(field, v, unit, 0)
}

func (d *durations) some(field string, v *int64, unit, absent time.Duration) time.Duration {
	if v == nil {
		return absent
	}
	most := longest / int64(unit/time.Millisecond)
	switch {
	case *v < 0:
		d.refuse(field, *v, "must not be negative")
		return 0
	case *v > most:
		d.refuse(field, *v, fmt.Sprintf("must be at most %d", most))
		return 0
	}
	return time.Duration(*v) * unit
}

func (d *durations) refuse(field string, v int64, why string) {
	if d.err == nil {
		d.err = invalidField(field, fmt.Sprintf("%s is %d; it %s", field, v, why))
	}
}
