package events_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A cursor is accepted unchanged, and refused when it was changed, or belongs to another deployment or the other order.
func TestCursorsAreChecked(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		h := trackertest.NewHarness(t, s)
		h.MustCreate()
		list := func(after string, back bool) (string, error) {
			p, err := h.Tracker.Events.List(h.Ctx, events.Query{Size: 2, After: after, Back: back})
			if err != nil {
				return "", err
			}
			return p.Next, nil
		}
		good, err := list("", false)
		if err != nil || !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(good) {
			t.Fatalf("%q, %v", good, err)
		}
		if _, err := list(good, false); err != nil {
			t.Error(err)
		}
		_, err = list(good, true)
		h.WantCode(err, events.InvalidCursor)
		raw, _ := base64.RawURLEncoding.DecodeString(good)
		for i := range raw {
			for _, bit := range []byte{1, 128} {
				bad := append([]byte(nil), raw...)
				bad[i] ^= bit
				_, err := list(base64.RawURLEncoding.EncodeToString(bad), false)
				h.WantCode(err, events.InvalidCursor)
			}
			_, err := list(base64.RawURLEncoding.EncodeToString(raw[:i]), i%2 == 0)
			if i > 0 {
				h.WantCode(err, events.InvalidCursor)
			}
		}
		for _, bad := range []string{"x", "NOW", "2026-01-15", "evt_000_1_0", good + "=", good + "A", strings.Repeat("A", 100_000), "\x00"} {
			_, err := list(bad, false)
			h.WantCode(err, events.InvalidCursor)
		}
		if err := s.Client.HSet(h.Ctx, "lubdub:{0}:meta", "id", "dep_another").Err(); err != nil {
			t.Fatal(err)
		}
		other := h.Replica()
		_, err = other.Tracker.Events.List(h.Ctx, events.Query{Size: 2, After: good})
		h.WantCode(err, events.InvalidCursor)
	})
}

// A store keeps its deployment's identifier, and gets it again from the running replicas after a loss.
func TestADeploymentKeepsItsName(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		name := h.Tracker.Store.Deployment()
		if !strings.HasPrefix(name, "dep_") || h.Replica().Tracker.Store.Deployment() != name {
			t.Fatalf("named %q, another replica has %q", name, h.Replica().Tracker.Store.Deployment())
		}
		h.Empty()
		trackertest.Until(t, func() bool { return h.Store.Client.HGet(h.Ctx, "lubdub:{0}:meta", "id").Val() == name })
	})
}
