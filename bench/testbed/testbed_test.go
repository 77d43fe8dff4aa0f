package testbed

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A scenario ends with its first failure, is reported as failed, and cleans up, the last first.
func TestPlay(t *testing.T) {
	var progress strings.Builder
	b := New(t.Context(), Options{Progress: &progress}, &report.Report{})
	var cleaned []int
	err := b.Play(report.Scenario{Name: "x", Title: "A scenario"}, func(b *Bed) {
		for i := range 3 {
			b.Cleanup(func() { cleaned = append(cleaned, i) })
		}
		if v := Must(7, nil); v != 7 {
			t.Error(v)
		}
		b.Figure("before", "", 1, "")
		Check(errors.New("it broke"))
		t.Error("it continued")
	})
	s := b.Report.Scenarios[0]
	if err == nil || err.Error() != "scenario x: it broke" || s.Failed != "it broke" || len(s.Figures) != 1 || s.StartedAt.IsZero() ||
		!slices.Equal(cleaned, []int{2, 1, 0}) || progress.String() != "A scenario\n" {
		t.Errorf("%v %+v %v %q", err, s, cleaned, &progress)
	}
	defer func() {
		if recover() == nil {
			t.Error("a panic was taken for a failure")
		}
	}()
	_ = Try(func() { panic("a bug") })
}

// What scenarios share is created once, also when that fails, and outlives the scenario that needed it first.
func TestShared(t *testing.T) {
	b := New(t.Context(), Options{}, &report.Report{})
	var made, cleaned int
	for round := range 2 {
		_ = b.Play(report.Scenario{}, func(b *Bed) {
			b.few.get(b, func() *Fixture { made++; b.Cleanup(func() { cleaned++ }); return &Fixture{} })
		})
		err := b.Play(report.Scenario{}, func(b *Bed) {
			b.many.get(b, func() *Fixture { made++; Check(errors.New("no room")); return nil })
		})
		if made != 2 || cleaned != 0 || err == nil {
			t.Errorf("round %d: made %d, cleaned %d, %v", round, made, cleaned, err)
		}
	}
	if b.End(); cleaned != 1 {
		t.Errorf("cleaned %d at the end", cleaned)
	}
}

// What scenarios give must be on the list of bars: a misspelt name would be lost in silence. What is not known is not given.
func TestAddRoundAndExplain(t *testing.T) {
	b := New(t.Context(), Options{}, &report.Report{Bars: []report.Bar{{Name: "other"}, {Name: "growth"}}})
	b.Scenario = &report.Scenario{}
	two := 2.0
	for _, v := range []float64{Of(&two), Of(nil), 1 / Of(new(0.0)), Both(report.Run{ServerMicros: &two}), P99(report.Run{})} {
		b.AddRound("growth", v)
		b.Figure("growth", "", v, "")
	}
	b.Explain("growth", "%s", "why")
	if other, bar := b.Report.Bars[0], b.Report.Bars[1]; !slices.Equal(bar.Rounds, []float64{2}) || bar.Note != "why" ||
		other.Rounds != nil || other.Note != "" || len(b.Scenario.Figures) != 1 {
		t.Errorf("%+v %+v %+v", other, bar, b.Scenario.Figures)
	}
	if m := report.Median([]float64{1, math.NaN(), 3}); !math.IsNaN(m) {
		t.Errorf("a median of what is not known is %v", m)
	}
	defer func() {
		if recover() == nil {
			t.Error("a bar that does not exist was given a value")
		}
	}()
	b.AddRound("grwoth", 1)
}

func TestAwait(t *testing.T) {
	b := New(t.Context(), Options{}, &report.Report{})
	left := 3
	b.Await(time.Hour, 1, func() (bool, error) { left--; return left == 0, nil })
	err := Try(func() { b.Await(-1, time.Hour, func() (bool, error) { return false, errors.New("2 of 3") }) })
	if err == nil || !strings.HasSuffix(err.Error(), "2 of 3") {
		t.Error(err)
	}
}

func TestQuantiles(t *testing.T) {
	if Quantiles(load.NewHistogram()) != nil {
		t.Error("nothing has no quantiles")
	}
	h := load.NewHistogram()
	for i := range 10_000 {
		h.Record(time.Duration(i+1) * 10 * time.Microsecond)
	}
	q := Quantiles(h)
	near := func(got, want float64) bool { return got > want*0.998 && got < want*1.002 }
	if q.Count != 10_000 || !near(q.P50Ms, 50) || !near(q.P99Ms, 99) || !near(q.P999Ms, 99.9) || !near(q.MaxMs, 100) || !near(q.MeanMs, 50) {
		t.Errorf("%+v", q)
	}
}
