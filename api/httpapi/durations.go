package httpapi

import (
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Durations converts numbers of milliseconds or seconds and keeps the first refusal. Values in a request must be positive, because
// zero means "absent" internally.
type Durations struct{ Err error }

// longest is above every limit of the domain and far from overflowing.
const longest = 1 << 40

// Positive returns a duration that must be positive, or 0 if absent.
func (d *Durations) Positive(field string, v *int64, unit time.Duration) time.Duration {
	if v != nil && *v == 0 {
		d.refuse(field, *v, "must be positive; omit it for the default")
		return 0
	}
	return d.OrDefault(field, v, unit, 0)
}

// OrDefault returns a duration that may be 0, or the default if absent.
func (d *Durations) OrDefault(field string, v *int64, unit, absent time.Duration) time.Duration {
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

// Delay returns a time until an attempt in ms, which may be 0; nil if absent.
func (d *Durations) Delay(field string, ms *int64) *time.Duration {
	most := model.MaxDelay.Milliseconds()
	switch {
	case ms == nil:
		return nil
	case *ms < 0 || *ms > most:
		d.refuse(field, *ms, fmt.Sprintf("must be 0 to %d, which is 366 days", most))
		return nil
	}
	return new(time.Duration(*ms) * time.Millisecond)
}

func (d *Durations) refuse(field string, v int64, why string) {
	if d.Err == nil {
		d.Err = InvalidField(field, fmt.Sprintf("%s is %d; it %s", field, v, why))
	}
}
