package cron_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cron"
)

// walk is the question to both implementations: the fires of an expression after each start, up to a time and at most so many a start.
type walk struct {
	Cron   string  `json:"cron"`
	Starts []int64 `json:"starts"` // s since the epoch, as all times here
	Until  int64   `json:"until"`
	Limit  int     `json:"limit"`
}

// walked is what came of it.
type walked struct {
	Fires int    `json:"fires"`
	Sum   uint32 `json:"sum"`
	First int64  `json:"first"`
	Last  int64  `json:"last"`
}

// by computes the walk with this package.
func (w walk) by(s *cron.Schedule) (r walked) {
	for _, start := range w.Starts {
		at := time.Unix(start, 0)
		for range w.Limit {
			if at = s.Next(at); at.IsZero() || at.Unix() > w.Until {
				break
			}
			if r.Last = at.Unix(); r.First == 0 {
				r.First = r.Last
			}
			r.Sum = (r.Sum ^ uint32(r.Last)) * 16777619
			r.Fires++
		}
	}
	return r
}

const (
	years      = 5
	sparse     = 2000 // fires in five years that are walked one by one; of more, some behind each of many times
	denseParts = 6
	denseEach  = 150
)

// walkOf returns a walk over five years from a random time.
func walkOf(r *rand.Rand, expression string, s *cron.Schedule) walk {
	from := time.Date(1971+r.IntN(2094-1971), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), 0, time.UTC)
	until := from.AddDate(years, 0, 0)
	w := walk{Cron: expression, Starts: []int64{from.Unix()}, Until: until.Unix(), Limit: sparse}
	if s.Count(from, until) > sparse {
		w.Limit = denseEach
		for range denseParts {
			w.Starts = append(w.Starts, from.Unix()+r.Int64N(until.Unix()-from.Unix()))
		}
	}
	return w
}

// expression makes a random one, and the same as croner reads it: weekdays count from 0, and ? would be the present.
func expression(r *rand.Rand) (ours, croners string) {
	a := []string{
		randomField(r, 0, 59, nil), randomField(r, 0, 59, nil), randomField(r, 0, 23, nil), randomField(r, 1, 31, nil),
		randomField(r, 1, 12, []string{"JAN", "feb", "Mar", "APR", "may", "JUN", "jul", "AUG", "sep", "OCT", "nov", "DEC"}),
	}
	if r.IntN(3) == 0 {
		a[3] = "*"
	}
	b := append([]string{}, a...)
	if a[3] == "*" && r.IntN(2) == 0 {
		a[3] = "?"
	}
	days := []string{"SUN", "mon", "Tue", "WED", "thu", "FRI", "SAT"}
	seed := r.Uint64()
	day := randomField(rand.New(rand.NewPCG(seed, 1)), 1, 7, days)
	same := randomField(rand.New(rand.NewPCG(seed, 1)), 1, 7, days, -1)
	if r.IntN(3) == 0 {
		day, same = "?", "*"
	}
	a, b = append(a, day), append(b, same)
	if r.IntN(4) == 0 {
		year := randomField(r, 1970, 2100, nil)
		a, b = append(a, year), append(b, year)
	}
	return strings.Join(a, " "), strings.Join(b, " ")
}

// randomField makes a field; shift is added to its numbers, not to steps. Left out is where croner is another: in it */n of years
// counts from year 1, and SUN-SUN is the whole week.
func randomField(r *rand.Rand, least, most int, names []string, shift ...int) string {
	value := func(n int) string {
		if names != nil && r.IntN(2) == 0 {
			return names[n-least]
		}
		for _, by := range shift {
			n += by
		}
		return strconv.Itoa(n)
	}
	span := func() (int, int) {
		a, b := least+r.IntN(most-least+1), least+r.IntN(most-least+1)
		if most == 7 && a == least && b == least {
			b++
		}
		return min(a, b), max(a, b)
	}
	step := func() int { return 1 + r.IntN((most-least+1)/2) }
	part := func() string {
		a, b := span()
		switch kind := r.IntN(5); {
		case kind == 0:
			return value(a) + "-" + value(b)
		case kind == 1:
			return fmt.Sprintf("%s-%s/%d", value(a), value(b), 1+r.IntN(b-a+1))
		case kind == 2 && most < 1970:
			return fmt.Sprintf("*/%d", step())
		default:
			return value(a)
		}
	}
	if r.IntN(4) == 0 {
		return "*"
	}
	parts := make([]string, 1+r.IntN(3))
	for i := range parts {
		parts[i] = part()
	}
	return strings.Join(parts, ",")
}
