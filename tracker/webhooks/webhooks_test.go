package webhooks_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

func named(id string) func(*model.NewTask) {
	return func(n *model.NewTask) { n.TaskID = id }
}

// Events are sent to the webhooks that subscribe to them, once, signed, and in order for each subject.
func TestEventsAreDelivered(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.MustCreate(named("before"))
		if got := h.deliver(); len(got) > 0 {
			t.Fatalf("delivered without a webhook: %v", kinds(got))
		}
		h.Advance(time.Minute)
		w := h.create("all", "task.*")
		h.create("failures", "task.failed")
		if _, err := h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: model.Scope{Tenant: "other", Workspace: "prod"}, ID: "all",
			Settings: settings("other", "task.*")}); err != nil {
			t.Fatal(err)
		}
		const tasks = 40
		for i := range tasks {
			a := h.Running(named(fmt.Sprintf("t%d", i)))
			if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Succeeded}); err != nil {
				t.Fatal(err)
			}
		}
		a := h.Running(named("fails"))
		if _, err := h.Beats.Complete(h.Ctx, a, model.Completion{Outcome: model.Failed, Error: []byte(`{"category":"UNKNOWN"}`)}); err != nil {
			t.Fatal(err)
		}
		got := h.deliver()
		bySubject, ids, failures := map[string][]string{}, map[string]bool{}, 0
		for _, p := range got {
			if p.url == "https://example.com/failures" {
				failures++
				continue
			}
			if p.url != "https://example.com/all" || !p.signedBy(t, w.Secret) || p.message.Data.Type != p.message.Type || ids[p.id()] {
				t.Fatalf("posted to %s: %+v %s", p.url, p.header, p.body)
			}
			ids[p.id()] = true
			bySubject[p.message.Data.Subject] = append(bySubject[p.message.Data.Subject], strings.TrimPrefix(p.message.Type, "task."))
		}
		if failures != 1 || len(bySubject) != tasks+1 {
			t.Fatalf("%d failures, %d subjects: %v", failures, len(bySubject), slices.Collect(maps.Keys(bySubject)))
		}
		for subject, types := range bySubject {
			want := "created dispatched started succeeded"
			if subject == "fails" {
				want = "created dispatched started failed"
			}
			if strings.Join(types, " ") != want {
				t.Errorf("%s: %v, want %s", subject, types, want)
			}
		}
		if again := h.deliver(); len(again) > 0 {
			t.Errorf("delivered again: %v", kinds(again))
		}
		if w := h.hook("all"); w.Pending != 0 || w.Secret != "" {
			t.Errorf("in the end: %+v", w)
		}
		if got := h.deliveries("all", webhooks.Statuses[1]); len(got) != 4*(tasks+1) ||
			got[0].Answer.Code != 200 || got[0].Answer.Body != "answer" {
			t.Errorf("%d deliveries, first %+v", len(got), got[0])
		}
	})
}

// A delivery that fails is retried with growing waits and the same ID, and is given up after the tenth try.
func TestFailuresAreTriedAgain(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("w", "task.created")
		h.MustCreate(named("t1"))
		h.always(500)
		began := h.Store.Clock.Now()
		var id string
		for try := 1; try <= 10; try++ {
			got := h.deliver()
			if len(got) != 1 || id != "" && got[0].id() != id {
				t.Fatalf("try %d: %d posts, %+v", try, len(got), got)
			}
			id = got[0].id()
			d := h.deliveries("w", "")[0]
			if d.Tries != try || d.Answer.Code != 500 || d.LastAt.IsZero() {
				t.Fatalf("try %d: %+v", try, d)
			}
			if try == 10 {
				if d.Status != "DEAD" || !d.NextAt.IsZero() {
					t.Fatalf("after the last try: %+v", d)
				}
				break
			}
			if more := h.deliver(); len(more) > 0 {
				t.Fatalf("try %d was repeated at once", try)
			}
			if d.Status != "PENDING" || !d.NextAt.After(h.Store.Clock.Now()) {
				t.Fatalf("try %d: %+v", try, d)
			}
			h.Store.Clock.Set(d.NextAt)
		}
		if took := h.Store.Clock.Now().Sub(began); took < 75*time.Hour || took > 84*time.Hour {
			t.Errorf("ten tries in %v", took)
		}
		if w := h.hook("w"); w.Pending != 0 || w.Dead != 1 || w.FailingSince.IsZero() || !w.Settings.Enabled {
			t.Errorf("%+v", w)
		}
		h.always(204)
		if err := h.Webhooks.Redeliver(h.Ctx, trackertest.Scope, "w", h.deliveries("w", "DEAD")[0].ID); err != nil {
			t.Fatal(err)
		}
		if got := h.deliver(); len(got) != 1 || got[0].id() != id {
			t.Fatalf("redelivered: %+v", got)
		}
		if w := h.hook("w"); w.Dead != 0 || !w.FailingSince.IsZero() {
			t.Errorf("after a success: %+v", w)
		}
	})
}

// A webhook that is gone, or that has only failed for five days, is disabled; an event reports that, and nothing waits for it.
func TestFailingWebhooksAreDisabled(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("gone", "task.created")
		h.create("failing", "task.created")
		h.create("watcher", "webhook.disabled")
		h.answers(func(url string, _ post) (int, error) {
			switch {
			case strings.HasSuffix(url, "gone"):
				return 410, nil
			case strings.HasSuffix(url, "failing"):
				return 0, errors.New("there was no answer")
			}
			return 200, nil
		})
		for i := range 100 {
			h.MustCreate(named(fmt.Sprint("t", i)))
		}
		h.deliver()
		h.deliver()
		w := h.hook("gone")
		if w.Settings.Enabled || w.DisabledReason != "GONE" || w.DisabledAt.IsZero() || w.Pending != 0 || w.Dead != 100 {
			t.Fatalf("after a 410: %+v", w)
		}
		if w := h.hook("failing"); !w.Settings.Enabled || w.Pending != 100 {
			t.Fatalf("after a failure: %+v", w)
		}
		h.Store.Clock.Advance(5*24*time.Hour - time.Second)
		h.deliver()
		if w := h.hook("failing"); !w.Settings.Enabled {
			t.Fatalf("before the time: %+v", w)
		}
		h.Store.Clock.Advance(24 * time.Hour)
		h.deliver()
		h.deliver()
		if w := h.hook("failing"); w.Settings.Enabled || w.DisabledReason != "FAILING" || w.Pending != 0 {
			t.Fatalf("after five days: %+v", w)
		}
		if disabled := h.Events("")["webhook.disabled"]; disabled != 2 {
			t.Errorf("%d events", disabled)
		}
		reported := map[string]string{}
		for _, d := range h.deliveries("watcher", "DELIVERED") {
			reported[d.Subject] = d.Type
		}
		if len(reported) != 2 {
			t.Errorf("delivered: %v", reported)
		}
		h.MustCreate(named("later"))
		if got := h.deliver(); len(got) > 0 {
			t.Errorf("posted to a webhook that is off: %v", kinds(got))
		}
		h.always(200)
		on := settings("gone", "task.created")
		if _, err := h.Webhooks.Update(h.Ctx, trackertest.Scope, "gone", on, false); err != nil {
			t.Fatal(err)
		}
		h.MustCreate(named("again"))
		h.deliver()
		if got := h.deliveries("gone", "DELIVERED"); len(got) == 0 || got[0].Subject != "again" {
			t.Errorf("after it was switched on: %+v", got)
		}
	})
}

// A full queue drops its oldest deliveries, and the webhook is notified of how many and of their times.
func TestAFullQueueIsReported(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("w", "task.created")
		h.create("watcher", "webhook.dropped")
		h.answers(func(url string, _ post) (int, error) {
			if strings.HasSuffix(url, "watcher") {
				return 200, nil
			}
			return 503, nil
		})
		began := h.Store.Clock.Now().Truncate(time.Millisecond)
		const tasks = 30
		last := map[int]bool{5: true, 17: true, tasks - 1: true} // of deliveries made together
		for i := range tasks {
			h.MustCreate(named(fmt.Sprintf("t%02d", i)))
			h.Store.Clock.Advance(time.Second)
			if last[i] {
				h.deliver()
			}
		}
		h.deliver()
		if dropped := h.Events("")["webhook.dropped"]; dropped != 1 {
			t.Errorf("%d events", dropped)
		}
		h.always(200)
		h.Store.Clock.Advance(time.Hour)
		dropped, from, to := 0, "~", ""
		got := map[string]bool{}
		for _, p := range h.deliver() {
			if !strings.HasSuffix(p.url, "/w") {
				continue
			}
			d := p.message.Data.Data
			if p.message.Type != "webhook.gap" {
				got[p.message.Data.Subject] = true
				continue
			}
			dropped, from, to = dropped+d.Dropped, min(from, d.From), max(to, d.To)
			if d.Reason != "QUEUE_FULL" {
				t.Errorf("the gap is %s", p.body)
			}
		}
		if len(got) == 0 || len(got) > 20 || dropped != tasks-len(got) {
			t.Fatalf("%d received, %d dropped", len(got), dropped)
		}
		at := func(i int) string {
			return began.Add(time.Duration(i) * time.Second).UTC().Format("2006-01-02T15:04:05.000Z")
		}
		if from[:19] != at(0)[:19] || to[:19] != at(dropped - 1)[:19] {
			t.Errorf("from %s to %s, want %s to %s", from, to, at(0), at(dropped-1))
		}
		for i := range tasks {
			if id := fmt.Sprintf("t%02d", i); got[id] != (i >= dropped) {
				t.Errorf("%s received: %v, though the %d oldest were dropped", id, got[id], dropped)
			}
		}
		h.MustCreate(named("v"))
		if got := h.deliver(); len(got) != 1 || got[0].message.Data.Subject != "v" {
			t.Errorf("afterwards: %v", kinds(got))
		}
	}, func(o *tracker.Options) { o.TenantWebhookBytes = 2 * 14_000 })
}

// A gap is also reported for events that a shard dropped before they were collected.
func TestATrimmedStreamIsReported(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("w", "task.created")
		h.MustCreate(named("kept"))
		h.deliver()
		for i := range 20 {
			h.MustCreate(named(fmt.Sprint("t", i)))
		}
		for shard := range h.Tracker.Store.Shards() {
			if err := h.Store.Client.XTrimMaxLen(h.Ctx, fmt.Sprintf("lubdub:{%d}:events", shard), 1).Err(); err != nil {
				t.Fatal(err)
			}
		}
		got := h.deliver()
		received := map[string]int{}
		for _, p := range got {
			received[p.message.Type+p.message.Data.Data.Reason]++
		}
		if received["webhook.gapEVENTS_TRIMMED"] != h.Tracker.Store.Shards() {
			t.Errorf("delivered: %v", received)
		}
	})
}

// Two secrets sign for a day after a rotation.
func TestSecretsAreRotated(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		old := h.create("w", "task.created").Secret
		w, err := h.Webhooks.RotateSecret(h.Ctx, trackertest.Scope, "w", "", false)
		if err != nil || w.Secret == old || w.OldSecretsUntil.IsZero() {
			t.Fatal(w, err)
		}
		for _, step := range []struct {
			after time.Duration
			old   bool
		}{{0, true}, {24*time.Hour - time.Second, true}, {time.Second, false}} {
			h.Store.Clock.Advance(step.after)
			h.MustCreate()
			got := h.deliver()
			if len(got) != 1 || !got[0].signedBy(t, w.Secret) || got[0].signedBy(t, old) != step.old {
				t.Errorf("%v later: %v", step.after, got[0].header)
			}
		}
		if _, err := h.Webhooks.RotateSecret(h.Ctx, trackertest.Scope, "w", "whsec_c2hvcnQ=", false); model.CodeOf(err) != model.Invalid {
			t.Errorf("a short secret: %v", err)
		} else if strings.Contains(err.Error(), "c2hvcnQ") {
			t.Error("the secret is revealed")
		}
	})
}

// A test message, and events since a time, are sent on request.
func TestRedeliveries(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		h.create("w", "task.created")
		since := h.Store.Clock.Now()
		for i := range 150 {
			h.MustCreate(named(fmt.Sprint("t", i)))
		}
		first := h.deliver()
		h.Store.Clock.Advance(time.Second)
		next, queued := since.Add(-time.Second).Format(time.RFC3339), 0
		for next != "" { // a call that takes too long leaves the rest to the next one
			done, err := h.Webhooks.RedeliverSince(h.Ctx, trackertest.Scope, "w", next)
			if err != nil {
				t.Fatal(err)
			}
			next, queued = done.Next, queued+done.Queued
		}
		if queued != 150 {
			t.Fatalf("%d events were queued", queued)
		}
		ids := map[string]int{}
		for _, p := range append(first, h.deliver()...) {
			ids[p.id()]++
		}
		for id, n := range ids {
			if n != 2 {
				t.Errorf("%s came %d times", id, n)
			}
		}
		if len(ids) != 150 {
			t.Errorf("%d ids", len(ids))
		}
		d, err := h.Webhooks.Test(h.Ctx, trackertest.Scope, "w")
		if err != nil {
			t.Fatal(err)
		}
		if got := h.deliver(); len(got) != 1 || got[0].message.Type != "webhook.test" || got[0].id() != d.MessageID {
			t.Errorf("tested: %+v", got)
		}
		newest, oldest := h.deliveries("w", ""), h.listed(webhooks.DeliveryFilter{WebhookID: "w", OldestFirst: true})
		slices.Reverse(oldest)
		if !reflect.DeepEqual(newest, oldest) {
			t.Errorf("oldest first there are %d, newest first %d", len(oldest), len(newest))
		}
		if got := newest[0]; got.ID != d.ID || got.Status != "DELIVERED" {
			t.Errorf("the test is %+v, was %+v", got, d)
		}
	})
}

// Invalid settings are refused, and nothing is stored.
func TestBadWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		good := settings("w", "task.failed")
		for field, n := range map[string]webhooks.NewWebhook{
			"events":      {Settings: settings("w")},
			"events ":     {Settings: settings("w", "task.exploded")},
			"url":         {Settings: settings("forbidden", "task.*")},
			"secret":      {Settings: good, Secret: "whsec_!"},
			"description": {Settings: webhooks.Settings{URL: "https://example.com", Description: strings.Repeat("x", 257), Filter: good.Filter}},
		} {
			n.Scope, n.ID = trackertest.Scope, "w"
			_, err := h.Webhooks.Create(h.Ctx, n)
			var bad *model.FieldError
			if model.CodeOf(err) != model.Invalid || !errors.As(err, &bad) || bad.Field != strings.TrimSpace(field) {
				t.Errorf("%s: %v", field, err)
			}
		}
		if all, err := h.Webhooks.List(h.Ctx, trackertest.Scope); err != nil || len(all) > 0 {
			t.Errorf("stored: %v %v", all, err)
		}
		h.create("w", "task.failed")
		_, err := h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: trackertest.Scope, ID: "w", Settings: good})
		h.WantCode(err, webhooks.Exists)
		_, err = h.Webhooks.Update(h.Ctx, trackertest.Scope, "none", good, false)
		h.WantCode(err, webhooks.NotFound)
		for i := range 99 {
			h.create(fmt.Sprint("w", i), "task.failed")
		}
		_, err = h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: trackertest.Scope, Settings: good})
		h.WantCode(err, model.Overloaded)
		if all, err := h.Webhooks.List(h.Ctx, trackertest.Scope); err != nil || len(all) != 100 {
			t.Errorf("listed: %d %v", len(all), err)
		}
		if err := h.Webhooks.Delete(h.Ctx, trackertest.Scope, "w", false); err != nil {
			t.Fatal(err)
		}
		h.WantCode(h.Webhooks.Delete(h.Ctx, trackertest.Scope, "w", false), webhooks.NotFound)
	})
}
