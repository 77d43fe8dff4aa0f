package webhooks

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/internal/shares"
)

func slotsOf(count int64) *slots { return newSlots(count, newMetrics(nil).waits) }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return c == nil
	}
}

// However many webhooks a tenant has, other tenants do not wait for its receivers.
func TestATenantLeavesSlotsForOthers(t *testing.T) {
	t.Parallel()
	s := slotsOf(allSlots)
	for hook := range 100 {
		for range parallel {
			s.takeOrQueue(shares.Holder{Tenant: "hostile", Token: fmt.Sprint(hook)})
		}
	}
	if used := s.pool.Used(); used > allSlots*4/5+1 {
		t.Errorf("one tenant holds %d of %d", used, allSlots)
	}
	for hook := range 4 {
		for range parallel {
			if s.takeOrQueue(shares.Holder{Tenant: "other", Token: fmt.Sprint(hook)}) != nil {
				t.Fatalf("another tenant waits, though %d of %d are in use", s.pool.Used(), allSlots)
			}
		}
	}
}

// Freed slots go to waiting deliveries in turn: by tenant, and by webhook within a tenant.
func TestFreedSlotsAreGrantedInTurn(t *testing.T) {
	t.Parallel()
	s := slotsOf(1)
	busy := shares.Holder{Tenant: "z", Token: "z"}
	s.takeOrQueue(busy)
	waiting := map[chan struct{}]string{}
	for _, name := range []string{"a1", "a1", "a1", "a2", "a2", "b1", "b1"} {
		waiting[s.takeOrQueue(shares.Holder{Tenant: name[:1], Token: name})] = name
	}
	var order []string
	for range 7 {
		s.release(busy.Tenant, busy.Token)
		for granted, name := range waiting {
			if isClosed(granted) {
				order, busy = append(order, name), shares.Holder{Tenant: name[:1], Token: name}
				delete(waiting, granted)
			}
		}
	}
	if want := []string{"a1", "b1", "a2", "b1", "a1", "a2", "a1"}; !slices.Equal(order, want) {
		t.Errorf("in this order: %v, want %v", order, want)
	}
}

// In any sequence of taking, returning and cancelled waits, no tenant without a slot waits while one is free, and in the end all are free
// and no waiting entry is left.
func TestSlots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type one struct {
			h       shares.Holder
			granted chan struct{}
		}
		s, all := slotsOf(rapid.Int64Range(1, 40).Draw(t, "slots")), []*one{}
		forget := func(i int) {
			o := all[i]
			all = slices.Delete(all, i, i+1)
			if isClosed(o.granted) {
				s.release(o.h.Tenant, o.h.Token)
				return
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.leave(o.h, o.granted) {
				t.Fatal("one that waits is in no line")
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(all) > 0 && rapid.Bool().Draw(t, "forget") {
				forget(rapid.IntRange(0, len(all)-1).Draw(t, "which"))
			} else {
				h := shares.Holder{Tenant: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant"),
					Token: rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "webhook")}
				all = append(all, &one{h, s.takeOrQueue(h)})
			}
			held, waits := map[string]int{}, map[string]int{}
			used := 0
			for _, o := range all {
				if isClosed(o.granted) {
					held[o.h.Tenant]++
					used++
				} else {
					waits[o.h.Tenant]++
				}
			}
			for tenant := range waits {
				if held[tenant] == 0 && int64(used) < s.pool.Limit() {
					t.Fatalf("%s waits, holds nothing, and %d of %d are in use", tenant, used, s.pool.Limit())
				}
			}
			if int64(used) != s.pool.Used() {
				t.Fatalf("%d were granted, %d are in use", used, s.pool.Used())
			}
		}
		for len(all) > 0 {
			forget(0)
		}
		if s.pool.Used() != 0 || len(s.tenants) != 0 {
			t.Fatalf("in the end %d are in use, %d tenants wait", s.pool.Used(), len(s.tenants))
		}
	})
}

// A cancelled wait leaves nothing behind, even when the slot was granted at that moment.
func TestWaitingForASlotEnds(t *testing.T) {
	t.Parallel()
	s := slotsOf(1)
	s.takeOrQueue(shares.Holder{Tenant: "a", Token: "a"})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if s.take(ended, "b", "b") || len(s.tenants) != 0 {
		t.Errorf("%d tenants wait", len(s.tenants))
	}
	if s.release("a", "a"); s.pool.Used() != 0 || !s.take(ended, "b", "b") {
		t.Errorf("%d in use", s.pool.Used())
	}
}
