package webhooks_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/outbound"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// long is more than anything here takes; it passes only after a failure.
const long = 2 * time.Minute

// within waits for a value.
func within[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(long):
		t.Fatalf("it never came to be: %s", what)
	}
	return v
}

// sweeping runs the sweeper until stop is called, which waits for its end.
func sweeping(h *trackertest.Harness) (stop func()) {
	ctx, cancel := context.WithCancel(h.Ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- h.Sweeper.Run(ctx) }()
	return func() {
		h.Helper()
		cancel()
		if err := within(h, "the sweeper stops", stopped); err != nil {
			h.Error(err)
		}
	}
}

// Slow receivers of one tenant, however many, delay no other tenant's deliveries.
func TestOneTenantsReceiversDelayNoOther(t *testing.T) {
	t.Parallel()
	contract(t, func(h *hooked) {
		const hooks, tasks, most = 34, 32, 819 // one tenant gets four fifths of 1,024 slots
		release, full, arrived, all := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		var underWay atomic.Int64
		h.answers(func(url string, _ post) (int, error) {
			if strings.Contains(url, "other") {
				close(arrived)
				return 200, nil
			}
			switch underWay.Add(1) {
			case most:
				close(full)
			case hooks * tasks:
				close(all)
			}
			<-release
			return 200, nil
		})
		for i := range hooks {
			h.create(fmt.Sprint("slow", i), "task.created")
		}
		for i := range tasks {
			h.MustCreate(named(fmt.Sprint("t", i)))
		}
		stop := sweeping(h.Harness)
		within(t, "the slow receivers have what they get", full)
		other := model.Scope{Tenant: "other", Workspace: "prod"}
		if _, err := h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: other, ID: "w", Settings: settings("other",
			"task.created")}); err != nil {
			t.Fatal(err)
		}
		h.MustCreate(func(n *model.NewTask) { n.Scope = other })
		within(t, "the other tenant's message arrives", arrived)
		close(release)
		within(t, "the slow receivers get all that they are sent", all)
		stop()
	})
}

// A request in progress is cancelled when its webhook is deleted or disabled, and others continue.
func TestRequestsEndWithTheirWebhook(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(h *hooked) error{
		"deleted": func(h *hooked) error { return h.Webhooks.Delete(h.Ctx, trackertest.Scope, "hangs", false) },
		"switched off": func(h *hooked) error {
			off := settings("hangs", "task.created")
			off.Enabled = false
			_, err := h.Webhooks.Update(h.Ctx, trackertest.Scope, "hangs", off, false)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			contract(t, func(h *hooked) {
				posted, ended := make(chan struct{}, 100), make(chan struct{}, 100)
				h.receiver.hangs = func(ctx context.Context, url string) bool {
					if !strings.HasSuffix(url, "hangs") {
						return false
					}
					posted <- struct{}{}
					<-ctx.Done()
					ended <- struct{}{}
					return true
				}
				h.create("hangs", "task.created")
				h.create("works", "task.created")
				for i := range 3 {
					h.MustCreate(named(fmt.Sprint("t", i)))
				}
				stop := sweeping(h.Harness)
				for range 3 {
					within(t, "a request hangs", posted)
				}
				if err := end(h); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					within(t, "a request ends", ended)
				}
				stop()
				h.deliver()
				if got := h.deliveries("works", webhooks.Statuses[1]); len(got) != 3 {
					t.Errorf("%d deliveries to the webhook that works", len(got))
				}
				if what == "deleted" {
					return
				}
				if w := h.hook("hangs"); w.Pending != 0 || w.Dead != 3 {
					t.Errorf("switched off: %+v", w)
				}
			})
		})
	}
}

// listening is a receiver on a socket that answers each request with a text and then keeps the connection open.
func listening(t testing.TB, text string) (url string, requested <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	requests := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = c.Write([]byte(text))
					requests <- struct{}{}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/", requests
}

// A receiver that takes over the connection, or sends nothing, blocks neither its delivery nor a sweeper that is stopping.
func TestNoReceiverHoldsADelivery(t *testing.T) {
	t.Parallel()
	real := func(o *tracker.Options) {
		o.WebhookPoster = outbound.New(outbound.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	}
	leading := func(h *trackertest.Harness, url string) {
		h.Helper()
		s := settings("w", "task.created")
		s.URL = url
		if _, err := h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: trackertest.Scope, ID: "w", Settings: s}); err != nil {
			h.Fatal(err)
		}
		h.MustCreate()
	}
	const switches = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hook\r\n\r\n"
	trackertest.Contract(t, func(h *trackertest.Harness) {
		url, _ := listening(h, switches)
		leading(h, url)
		done := make(chan error, 1)
		go func() { done <- h.Sweeper.Deliver(h.Ctx) }()
		if err := within(t, "the delivery ends", done); err != nil {
			t.Fatal(err)
		}
		got := (&hooked{Harness: h}).deliveries("w", "")
		if len(got) != 1 || got[0].Status != webhooks.Statuses[0] || got[0].Answer == nil || got[0].Answer.Code != 101 {
			t.Errorf("%+v", got[0])
		}
	}, real)
	for what, text := range map[string]string{"101": switches, "silence": ""} {
		t.Run("stops after "+what, func(t *testing.T) {
			trackertest.Contract(t, func(h *trackertest.Harness) {
				url, requested := listening(h, text)
				leading(h, url)
				stop := sweeping(h)
				within(t, "the receiver is called", requested)
				stop()
			}, real)
		})
	}
}
