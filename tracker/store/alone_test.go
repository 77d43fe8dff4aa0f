package store_test

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker/store"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// A round trip of other calls during that of bulk calls makes their lane rest, on a node that is otherwise at rest.
func TestBulkCallsAreAloneWithoutOtherRoundTrips(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Store) {
		st := trackertest.OpenOn(t, s).Store
		flush := func(during func()) (alone bool) {
			c := st.FindCall(0, store.Overdue{Set: st.Keys[0].Timers})
			alone = st.FlushBulk(c, during)
			if c.Err != nil {
				t.Fatal(c.Err)
			}
			return alone
		}
		// Not at once: the script is loaded first, and the tracker's own work may come in between.
		trackertest.Eventually(t, "a bulk call is alone", func() bool { return flush(func() {}) })
		for range 3 {
			other := false
			alone := flush(func() {
				if err := st.Ready(t.Context()); err != nil {
					t.Error(err)
				}
				other = true
			})
			if alone || !other {
				t.Errorf("during another round trip (%v), a bulk call was alone: %v", other, alone)
			}
		}
	})
}
