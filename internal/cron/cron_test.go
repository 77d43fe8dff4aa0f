package cron_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cron"
)

func parse(t *testing.T, text string) *cron.Schedule {
	t.Helper()
	s, err := cron.Parse(text)
	if err != nil {
		t.Fatalf("%q is refused: %v", text, err)
	}
	return s
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// Expressions of the contract have their documented meaning.
func TestNext(t *testing.T) {
	for _, c := range []struct{ cron, after, want string }{
		{"* * * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"},
		{"* * * * * *", "2026-01-01T00:00:00.999Z", "2026-01-01T00:00:01Z"},
		{"0 30 9,12,15 1,15 May-Aug Mon,Wed,Fri 2018/2", "2017-01-01T00:00:00Z", "2018-06-01T09:30:00Z"},
		{"0 0 0 * * 1", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"}, // a Sunday
		{"0 0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"}, // a Saturday
		{"0 0 0 * * SUN", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
		{"0 0 0 * * sunday", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
		{"0 0 0 * January ?", "2026-02-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"0 0 0 13 * FRI", "2026-01-01T00:00:00Z", "2026-02-13T00:00:00Z"}, // both day fields match
		{"0 0 0 ? * 6", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"0 0 0 31 * ?", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"0 5/20 * * * *", "2026-01-01T00:05:00Z", "2026-01-01T00:25:00Z"},
		{"0  0\t0 29 2 *", "2096-02-29T00:00:00Z", ""}, // 2100 is no leap year, and the last one
		{"0 0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 0 29 2 MON", "2026-01-01T00:00:00Z", "2044-02-29T00:00:00Z"},
		{"59 59 23 31 12 ? 2100", "1970-01-01T00:00:00Z", "2100-12-31T23:59:59Z"},
		{"59 59 23 31 12 ?", "2100-12-31T23:59:59Z", ""},
		{"0 0 0 30 2 *", "2026-01-01T00:00:00Z", ""},
		{"0 0 0 * * * 2020", "2026-01-01T00:00:00Z", ""},
		{"0 0 0 1 1 * 1970", "1969-06-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
		{"30 9 * * MON-FRI", "2026-01-02T09:30:00Z", "2026-01-05T09:30:00Z"},
		{"0 0 1 */3 ?", "2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z"},
	} {
		got, want := parse(t, c.cron).Next(at(t, c.after)), ""
		if !got.IsZero() {
			want = got.Format(time.RFC3339Nano)
		}
		if want != c.want {
			t.Errorf("%q after %s fires at %q, want %q", c.cron, c.after, want, c.want)
		}
	}
}

// Expressions outside the contract are refused: the message names the field, states what is wrong and gives a valid example.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ cron, field, want string }{
		{"", "", `has 0 fields; use five to seven, [seconds] minutes hours day-of-month month day-of-week [year], for example "0 30 9 * * MON-FRI"`},
		{"* * * *", "", "has 4 fields"},
		{"0 24 * * *", "hours", `has "24" as hours, its 2nd field: 24 is not within 0–23`},
		{"0 9 * * 1-5", "day of week", `its 5th field: in five fields days are names, since crontab counts them from SUN = 0`},
		{"0 9 * * MON,3", "day of week", "in five fields days are names"},
		{"0 9 1 * MON", "day of week", "crontab fires on days that match either day field"},
		{"0 9 1 * */2", "day of week", "crontab fires on days that match either day field"},
		{"* * * * * * * *", "", "has 8 fields"},
		{"TZ=Europe/Berlin 0 0 9 * * *", "", `begins with "TZ=Europe/Berlin"; shorthands and time zones are not supported`},
		{"CRON_TZ=UTC 0 0 9 * *", "", "time zones are not supported"},
		{"@daily", "", `begins with "@daily"; shorthands`},
		{"@every 1h", "", "shorthands"},
		{strings.Repeat("0,", 300) + "0 * * * * *", "", "has 611 bytes; use at most 512"},
		{"60 * * * * *", "seconds", `has "60" as seconds, its 1st field: 60 is not within 0–59; for example "0,30"`},
		{"0 60 * * * *", "minutes", `its 2nd field: 60 is not within 0–59; for example "*/15"`},
		{"0 0 24 * * *", "hours", "24 is not within 0–23"},
		{"0 0 0 0 * *", "day of month", "0 is not within 1–31"},
		{"0 0 0 32 * *", "day of month", "32 is not within 1–31"},
		{"0 0 0 * 13 *", "month", "13 is not within 1–12"},
		{"0 0 0 * JANU *", "month", `"JANU" is neither a number nor a name such as JAN`},
		{"0 0 0 * * 0", "day of week", "0 is not within 1–7; 1 is SUN and 7 is SAT"},
		{"0 0 0 * * 8", "day of week", `8 is not within 1–7; 1 is SUN and 7 is SAT; for example "MON-FRI"`},
		{"0 0 0 * * XYZ", "day of week", `"XYZ" is neither a number nor a name such as SUN`},
		{"0 0 0 * * * 1969", "year", "1969 is not within 1970–2100"},
		{"0 0 0 * * * 2101", "year", "2101 is not within 1970–2100"},
		{"0 0 0 * * * 20300", "year", `"20300" is no number`},
		{"0 0 22-2 * * *", "hours", "a range does not go past the end; write 22-23,0-2"},
		{"0 0 0 * * 6-2", "day of week", "a range does not go past the end; write 6-7,1-2"},
		{"0 0 0 * * FRI-MON", "day of week", "write FRI-7,1-MON"},
		{"? * * * * *", "seconds", "? is for the two day fields; use *"},
		{"0 0 0 * ? *", "month", "? is for the two day fields"},
		{"0 0 0 * * * ?", "year", "? is for the two day fields"},
		{"0 0 0 ?/2 * *", "day of month", "? takes no step"},
		{"0 */0 * * * *", "minutes", `the step behind / is a number from 1 to 60, not "0"`},
		{"0 */90 * * * *", "minutes", `the step behind / is a number from 1 to 60, not "90"`},
		{"0 */ * * * *", "minutes", `the step behind / is a number from 1 to 60, not ""`},
		{"0 1,,2 * * * *", "minutes", "a value is missing"},
		{"0 , * * * *", "minutes", "a value is missing"},
		{"0 1- * * * *", "minutes", `"" is no number`},
		{"0 -1 * * * *", "minutes", `"" is no number`},
		{"0 1-2-3 * * * *", "minutes", `"2-3" is no number`},
		{"0 1/2/3 * * * *", "minutes", `not "2/3"`},
		{"0 +1 * * * *", "minutes", `"+1" is no number`},
		{"0 *-5 * * * *", "minutes", `"*" is no number`},
		{"0 ** * * * *", "minutes", `"**" is no number`},
		{"0 H * * * *", "minutes", `"H" is no number`},
		{"0 0 0 L * *", "day of month", `"L" is no number`},
		{"0 0 0 15W * *", "day of month", `"15W" is no number`},
		{"0 0 0 * * FRI#3", "day of week", `"FRI#3" is neither`},
		{"0 0 0 * * 6L", "day of week", `"6L" is neither`},
		{"0 0 0 1 * *\n* * * * * *", "", "has 11 fields"},
		{"0 0 ٣ * * *", "hours", "is no number"},
	} {
		_, err := cron.Parse(c.cron)
		var wrong *cron.Error
		switch {
		case !errors.As(err, &wrong):
			t.Errorf("%q is taken", c.cron)
		case wrong.Field != c.field || !strings.Contains(wrong.Message, c.want):
			t.Errorf("%q is refused for %q: %s; want %q: %s", c.cron, wrong.Field, wrong.Message, c.field, c.want)
		case !strings.Contains(wrong.Message, "for example") && wrong.Field != "":
			t.Errorf("%q: %s has no example", c.cron, wrong.Message)
		}
	}
}

// Newest and Count are what Next gives step by step.
func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		text, _ := expression(r)
		s := parse(t, text)
		from := time.Date(1969+r.IntN(2102-1969), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(2), time.UTC)
		upTo, most := from.Add(time.Duration(r.Int64N(int64(1000*24*time.Hour)))), 3000
		if s.Count(from, upTo) > int64(most) {
			upTo = from.Add(time.Duration(r.Int64N(int64(40 * time.Minute))))
		}
		var all []time.Time
		for next := s.Next(from); !next.IsZero() && !next.After(upTo); next = s.Next(next) {
			all = append(all, next)
		}
		if got := s.Count(from, upTo); got != int64(len(all)) {
			t.Fatalf("%q has %d fires from %v to %v, want %d", text, got, from, upTo, len(all))
		}
		limit := r.IntN(20)
		got, want := s.Newest(from, upTo, limit), all[max(0, len(all)-limit):]
		if len(got) != len(want) {
			t.Fatalf("%q: the newest %d from %v to %v are %v, want %v", text, limit, from, upTo, got, want)
		}
		for i := range want {
			if !got[i].Equal(want[i]) {
				t.Fatalf("%q: the newest %d from %v to %v are %v, want %v", text, limit, from, upTo, got, want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{cron.Example, "0 0 0 ? * 6-7/2 2030-2040/3", "* * * * *", "TZ=UTC * * * * * *", "0 0 0 31 2 *"} {
		f.Add(seed)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := cron.Parse(text)
		if err != nil {
			return
		}
		if next := s.Next(now); !next.IsZero() && (!next.After(now) || s.Count(now, next) != 1) {
			t.Errorf("%q fires at %v after %v, and counts %d", text, next, now, s.Count(now, next))
		}
	})
}

func BenchmarkNext(b *testing.B) {
	s, err := cron.Parse("0 0 0 29 2 MON")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.Next(time.Unix(1_800_000_000, 0))
	}
}
