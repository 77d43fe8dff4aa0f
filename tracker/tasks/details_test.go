package tasks_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// Details belong to a live attempt: those of one that a sweeper has ended are not stored, those of one that the store has lost are.
func TestDetailsAreFenced(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		beat := func(a *model.Attempt, details string) error {
			b := &beats.Beat{Attempt: a, Details: details}
			h.Beats.Beat(b)
			return b.Err
		}
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		if err := beat(a, `{"frame":1}`); err != nil {
			h.Fatal(err)
		}
		h.Advance(2 * a.Timeout)
		h.MustSweep()
		h.WantState("t1", model.Failed, model.HeartbeatTimeout)
		h.WantCode(beat(a, `{"frame":2}`), model.Expired)
		if got := h.MustGet("t1"); string(got.Details) != `{"frame":1}` {
			h.Errorf("%s", got.Details)
		}
		lost := h.MustCreate(func(n *model.NewTask) { n.TaskID = "t2" }).Envelope.Attempt
		h.Empty()
		if err := beat(lost, `{"frame":3}`); err != nil {
			h.Fatal(err)
		}
		if got := h.WantState("t2", model.Running, ""); string(got.Details) != `{"frame":3}` {
			h.Errorf("%s", got.Details)
		}
	})
}

// Among many beats, those with details neither delay nor fail the others, and each has its own result.
func TestManyBeatsWithAndWithoutDetails(t *testing.T) {
	t.Parallel()
	trackertest.Claims(t, func(c *trackertest.Fleet) {
		c.Hire("ann")
		held := c.MustHolding("ann", 4)
		if _, err := c.Beats.Complete(c.Ctx, held[3], model.Completion{Outcome: model.Succeeded}); err != nil {
			c.Fatal(err)
		}
		many := []*beats.Beat{
			{Attempt: held[0], Details: `"0"`}, {Attempt: held[1], Report: "\t\t5\t"}, {Attempt: held[3], Details: `"3"`},
			{Attempt: held[2], Details: `"2"`, Report: "\t\t6\t"}, {Attempt: held[3]},
		}
		for range 2 {
			c.Beats.BeatMany(many)
			for i, want := range []model.Code{"", "", model.AlreadyTerminal, "", model.AlreadyTerminal} {
				if got := model.CodeOf(many[i].Err); got != want || want == "" && many[i].At.IsZero() {
					c.Errorf("beat %d: %q, want %q", i, got, want)
				}
			}
		}
		for i, want := range []model.Progress{{Details: `"0"`}, {Pct: "5"}, {Details: `"2"`, Pct: "6"}, {}} {
			if got := c.MustGet(held[i].TaskID); string(got.Details) != want.Details || got.Progress.Pct != want.Pct {
				c.Errorf("task %d: %s %+v", i, got.Details, got.Progress)
			}
		}
	})
}

// Large details count among the bytes of their task, and only the latest of them.
func TestDetailsCountAsBytes(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		a := h.Running(func(n *model.NewTask) { n.TaskID = "t1" })
		for _, c := range []struct {
			bytes int
			want  []string
		}{{200, nil}, {model.MaxDetailsBytes, []string{"~acme/Q/prod/t1"}}, {5000, []string{"~acme/J/prod/t1"}}, {10, nil}} {
			b := &beats.Beat{Attempt: a, Details: `"` + strings.Repeat("x", c.bytes-2) + `"`}
			if h.Beats.Beat(b); b.Err != nil {
				h.Fatal(b.Err)
			}
			if got := h.Sizes(); !slices.Equal(got, c.want) {
				h.Errorf("with %d bytes: %v, want %v", c.bytes, got, c.want)
			}
		}
	})
}
