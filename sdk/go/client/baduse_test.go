//go:build go1.25

package client_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// Timeouts that leave no room for one Retry-After are taken, and warned of.
func TestShortTimeoutsAreWarnedOf(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log bytes.Buffer
		server := workertest.New(t, workertest.MachineTime())
		c := newClient(t, server.URL(), append(server.Options(), client.Logger(slog.New(slog.NewTextHandler(&log, nil))))...)
		for _, timeout := range []int64{3000, 2999} {
			interval := int64(1000)
			_, a, err := c.Track(t.Context(), server.Push(v1.CreateTaskRequest{HeartbeatIntervalMs: &interval, HeartbeatTimeoutMs: &timeout}))
			if err != nil {
				t.Fatal(err)
			}
			if warned := strings.Contains(log.String(), "no room for one Retry-After"); warned != (timeout < 3000) {
				t.Errorf("%d ms: %q", timeout, log.String())
			}
			a.Abandon()
		}
	})
}

func TestBadUseIsReportedEarly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newSite(t)
		e, _, a := s.push()
		for _, pct := range []float64{-1, 100.5, nan()} {
			if err := a.Progress(pct, ""); err == nil || !strings.Contains(err.Error(), "between 0 and 100") {
				t.Errorf("%v%%: %v", pct, err)
			}
		}
		synctest.Wait()
		n := len(s.server.Requests())
		if _, err := a.Done(make(chan int)); !errors.Is(err, client.ErrOutput) {
			t.Errorf("not JSON: %v", err)
		}
		if _, err := a.Done(strings.Repeat("x", 256<<10)); !errors.Is(err, client.ErrOutput) ||
			!strings.Contains(err.Error(), "put the output elsewhere") {
			t.Errorf("too large: %v", err)
		}
		if len(s.server.Requests()) != n {
			t.Error("it was sent")
		}
		if _, err := a.Done(nil); err != nil { // the attempt continues after that
			t.Error(err)
		}
		if err := a.Progress(1, ""); !errors.Is(err, client.ErrEnded) {
			t.Errorf("progress after the end: %v", err)
		}
		if _, err := a.Done(nil); !errors.Is(err, client.ErrEnded) {
			t.Errorf("a second completion: %v", err)
		}
		if _, err := a.Fail(errors.New("late")); !errors.Is(err, client.ErrEnded) {
			t.Errorf("a failure after the end: %v", err)
		}
		short := *e
		short.HeartbeatTimeoutMs = ms(15 * time.Second)
		if _, _, err := s.client.Track(t.Context(), &short); err == nil || !strings.Contains(err.Error(), "less than twice") {
			t.Errorf("a short timeout: %v", err)
		}
		elsewhere := *e
		elsewhere.CallbackBaseURL = "http://elsewhere.example"
		if _, _, err := s.client.Track(t.Context(), &elsewhere); err == nil || !strings.Contains(err.Error(), "AllowHTTP") {
			t.Errorf("http elsewhere: %v", err)
		}
		if _, _, err := s.client.Track(t.Context(), e); !errors.Is(err, client.ErrTaskAlreadyTerminal) || !errors.As(err, new(client.Lost)) {
			t.Errorf("a finished task: %v", err)
		}
	})
}
