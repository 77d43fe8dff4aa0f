package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/lane"
)

// TestTenantsTakeTurnsInBulkCalls: a tenant that lists much delays the list of another by one round trip.
func TestTenantsTakeTurnsInBulkCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trips []string
		n := &Node{}
		n.bulk = lane.NewTurns(100, bulkPerRoundTrip, bulkRests, func(calls []*Call) (alone bool) {
			trip := ""
			for _, c := range calls {
				trip += c.Argv[0].(string)
				c.waiter.Done()
			}
			trips = append(trips, trip)
			time.Sleep(time.Millisecond)
			return false
		})
		s := &runner{topology: &topology{}, deadlines: deadlines{time.Second}}
		s.topology.byShard.Store(&[]*Node{n})
		list := func(tenant, call string, calls int) {
			many := make([]*Call, calls)
			for i := range many {
				many[i] = &Call{Script: &lua.Script{}, Argv: []any{call}}
			}
			go s.DoBulk(ForTenant(t.Context(), tenant), "list", many)
			synctest.Wait()
		}
		list("acme", "a", 4)
		list("acme", "b", 8)
		list("acme", "c", 8)
		list("umbrella", "u", 4)
		go s.DoBulk(context.Background(), "repair", []*Call{{Script: &lua.Script{}, Argv: []any{"r"}}})
		synctest.Wait()
		n.bulk.Close()
		if want := []string{"aaaa", "bbbb", "uuuu", "rbbb", "bccc", "cccc", "c"}; !slices.Equal(trips, want) {
			t.Errorf("round trips %v, want %v", fmt.Sprint(trips), want)
		}
	})
}
