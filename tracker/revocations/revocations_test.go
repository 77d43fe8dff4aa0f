package revocations_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/revocations"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

type R = revocations.Revocation

// replica applies revocations.
type replica struct {
	*trackertest.Harness
	all []revocations.Revocation
}

func subscribed(h *trackertest.Harness) *replica {
	r := &replica{Harness: h}
	h.Revocations.Subscribe(func(all, _ []revocations.Revocation) {
		r.all = slices.SortedFunc(slices.Values(all), func(a, b revocations.Revocation) int { return cmp.Compare(a.Name, b.Name) })
	})
	return r
}

func (r *replica) refresh() {
	r.Helper()
	if err := r.Revocations.Refresh(r.Ctx); err != nil {
		r.Fatal(err)
	}
}

func (r *replica) want(names ...string) {
	r.Helper()
	var got []string
	for _, one := range r.all {
		got = append(got, one.Name)
	}
	if !slices.Equal(got, names) {
		r.Fatalf("known revocations: %v, want %v", got, names)
	}
}

func (r *replica) revoke(one revocations.Revocation) {
	r.Helper()
	if err := r.Revocations.Revoke(r.Ctx, one); err != nil {
		r.Fatal(err)
	}
}

func (r *replica) revokedEvents() int64 {
	r.Helper()
	n := int64(0)
	events, err := r.Store.Client.XRange(r.Ctx, "lubdub:{0}:events", "-", "+").Result()
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range events {
		if e.Values["type"] == "system.tokens_revoked" {
			n++
		}
	}
	return n
}

func subject(name string, before time.Time) revocations.Revocation {
	return R{Kind: revocations.OfSubject, Tenant: "acme", Workspace: revocations.Wildcard, Name: name, IssuedBefore: before}
}

// Each replica learns every field of the other's revocations; the later of two with the same key is in effect, and repeating one changes
// nothing and writes no event.
func TestReplicasLearnOfRevocations(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		one, other := subscribed(h), subscribed(trackertest.NewHarness(h.TB, h.Store))
		now := h.Store.Clock.Now().Truncate(time.Second)
		w := R{Kind: revocations.OfWorker, Tenant: "acme", Workspace: "prod", Name: "wkr_1", IssuedBefore: now}
		ann := subject("ann/of+x@y.z", now.Add(-time.Minute))
		of := R{Kind: revocations.OfTenant, Tenant: "gone", Workspace: revocations.Wildcard, IssuedBefore: now}
		for range 2 {
			one.revoke(w)
			one.revoke(ann)
			one.revoke(of)
		}
		other.refresh()
		for _, r := range []*replica{one, other} {
			if want := []revocations.Revocation{of, ann, w}; !slices.Equal(r.all, want) {
				t.Fatalf("known revocations: %+v, want %+v", r.all, want)
			}
		}
		if n := one.revokedEvents(); n != 3 {
			t.Errorf("%d events", n)
		}
		later := subject(ann.Name, now)
		other.revoke(later)
		one.revoke(ann) // is covered
		one.refresh()
		if one.all[1] != later || len(one.all) != 3 || one.revokedEvents() != 4 {
			t.Errorf("%+v, %d events", one.all, one.revokedEvents())
		}
	})
}

// A replica that cannot read the list uses the known revocations, and learns the rest later.
func TestARevocationOutlivesTrouble(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		one, other := subscribed(h), subscribed(trackertest.NewHarness(h.TB, h.Store))
		now := h.Store.Clock.Now().Truncate(time.Second)
		one.revoke(subject("ann", now))
		other.refresh()
		down := true
		trackertest.FailCalls(other.Tracker, "revocations", false, func(int) bool { return down })
		one.revoke(subject("bob", now))
		if err := other.Revocations.Refresh(h.Ctx); model.CodeOf(err) != model.Unavailable {
			t.Fatalf("%v", err)
		}
		other.want("ann")
		down = false
		other.refresh()
		other.want("ann", "bob")
	})
}

// A store that has lost the list, or a part of it, gets it back from a replica, without events.
func TestAStoreThatLostTheListGetsItBack(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		one := subscribed(h)
		now := h.Store.Clock.Now().Truncate(time.Second)
		for i := range 600 {
			one.revoke(subject(fmt.Sprintf("s%03d", i), now))
		}
		one.refresh()
		if err := h.Store.Client.Del(h.Ctx, schema.RevocationsKey).Err(); err != nil {
			t.Fatal(err)
		}
		before := one.revokedEvents()
		one.refresh()
		other := subscribed(trackertest.NewHarness(h.TB, h.Store))
		if len(other.all) != 600 || one.revokedEvents() != before {
			t.Errorf("%d came back, %d were published", len(other.all), one.revokedEvents()-before)
		}
	})
}

// A revocation of tokens that have all expired is removed, also from the store.
func TestRevocationsEnd(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		one, other := subscribed(h), subscribed(trackertest.NewHarness(h.TB, h.Store))
		now := h.Store.Clock.Now().Truncate(time.Second)
		one.revoke(subject("ann", now))
		one.revoke(R{Kind: revocations.OfWorker, Tenant: "acme", Workspace: "prod", Name: "wkr_1", IssuedBefore: now})
		other.refresh()
		h.Store.Clock.Advance(2*time.Hour - time.Millisecond)
		other.refresh()
		other.revoke(subject("bob", now))
		other.want("ann", "bob", "wkr_1")
		h.Store.Clock.Advance(time.Millisecond)
		other.refresh()
		other.revoke(subject("eve", now))
		other.want("ann", "bob", "eve")
		if left, err := h.Store.Client.ZRange(h.Ctx, schema.RevocationsKey, 0, -1).Result(); err != nil || len(left) != 4 {
			t.Errorf("%v, %v", left, err)
		}
	})
}

// The number of revocations is limited, and lower for one tenant, so that it does not prevent another's.
func TestRevocationsAreBounded(t *testing.T) {
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		now := h.Store.Clock.Now().Truncate(time.Second)
		expiry := float64(now.Add(model.MaxControlTTL).UnixMilli())
		fill := func(tenant string, n int) {
			var all []redis.Z
			for i := range n {
				all = append(all, redis.Z{Score: expiry, Member: fmt.Sprintf("s/%s/prod/%d", tenant, i)})
			}
			all = append(all, redis.Z{Score: -float64(now.UnixMilli() + int64(n)), Member: "!"})
			if err := h.Store.Client.ZAdd(h.Ctx, schema.RevocationsKey, all...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		tooMany := func(err error) bool {
			var e *model.Error
			return errors.As(err, &e) && e.Code == model.Overloaded && e.TooMany && e.RetryAfter > 0
		}
		one := subscribed(h)
		fill("acme", revocations.MaxOfTenant)
		one.refresh()
		if err := h.Revocations.Revoke(h.Ctx, subject("ann", now)); !tooMany(err) {
			t.Errorf("one more of the tenant: %v", err)
		}
		one.revoke(R{Kind: revocations.OfSubject, Tenant: "acme", Workspace: "prod", Name: "7", IssuedBefore: now.Add(time.Second)})
		other := subject("ann", now)
		other.Tenant = "other"
		one.revoke(other)
		fill("all", revocations.MaxRevocations-revocations.MaxOfTenant-1)
		other.Name = "bob"
		if err := h.Revocations.Revoke(h.Ctx, other); !tooMany(err) {
			t.Errorf("one more than all: %v", err)
		}
		other.Name, other.IssuedBefore = "ann", now.Add(time.Second)
		one.revoke(other) // it has an entry
	})
}

// A tenant with as many revocations as allowed can still revoke all of its tokens at once, as the error suggests; and many such tenants
// together leave space for another one.
func TestRevocationsAreSharedByTenants(t *testing.T) {
	testenv.OnlyAll(t)
	t.Parallel()
	trackertest.Contract(t, func(h *trackertest.Harness) {
		now := h.Store.Clock.Now().Truncate(time.Second)
		one := subscribed(h)
		var all []redis.Z
		for tenant := range 9 {
			for i := range revocations.MaxOfTenant {
				all = append(all, redis.Z{Score: float64(now.Add(model.MaxControlTTL).UnixMilli()), Member: fmt.Sprintf("s/t%d/prod/%d", tenant, i)})
			}
		}
		all = append(all, redis.Z{Score: -float64(now.UnixMilli() + 1), Member: "!"})
		if err := h.Store.Client.ZAdd(h.Ctx, schema.RevocationsKey, all...).Err(); err != nil {
			t.Fatal(err)
		}
		one.refresh()
		one.revoke(R{Kind: revocations.OfTenant, Tenant: "t0", Workspace: revocations.Wildcard, IssuedBefore: now})
		revoke := func(tenant string, i int) error {
			r := subject(fmt.Sprint(i), now)
			r.Tenant = tenant
			return h.Revocations.Revoke(h.Ctx, r)
		}
		taken := 0
		for revoke("greedy", taken) == nil {
			taken++
		}
		for i := range 100 {
			if err := revoke("other", i); err != nil {
				t.Fatalf("the %d. revocation of another tenant, after %d of a greedy one: %v", i+1, taken, err)
			}
		}
	})
}
