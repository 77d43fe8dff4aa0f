package httpapi

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// However many cores take at the same time, a tenant gets its share and no more.
func TestATenantsBucketUnderRaces(t *testing.T) {
	t.Parallel()
	l := newTenantLimit("s", "w", 1000, testTime, func() {})
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var at atomic.Pointer[bucket]
			for range 1000 {
				if l.take("acme", &at, testTime) == nil {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != 1000 {
		t.Errorf("%d of a share of 1,000 were taken", taken.Load())
	}
}

// Tenants are forgotten when there are many, but never what they have taken, also not by tokens that remember a bucket.
func TestTenantsAreForgottenWithoutAGift(t *testing.T) {
	t.Parallel()
	l := newTenantLimit("s", "w", 1, testTime, func() {})
	var remembered, rested atomic.Pointer[bucket]
	now := testTime.Add(2 * time.Second)
	if l.take("rested", &rested, testTime) != nil || l.take("busy", &remembered, now) != nil {
		t.Fatal("refused")
	}
	for i := range maxIdleBuckets {
		l.take(fmt.Sprint("tenant", i), nil, testTime)
	}
	l.take("one more", nil, now)
	if n := l.count.Load(); n > 2 {
		t.Errorf("%d tenants are remembered, and all but two have full buckets", n)
	}
	if l.take("busy", nil, now) == nil || l.take("busy", &remembered, now) == nil {
		t.Error("a tenant that was forgotten got its share twice")
	}
	if l.take("rested", &rested, now) != nil || l.take("rested", nil, now) == nil {
		t.Error("a token still uses the bucket that its tenant had before")
	}
}

// A tenant that has used its rate gets 429 and Retry-After, for a batch too; a replica that is full answers 503.
func TestTooMuchOfATenantIsNotThisReplicasTrouble(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		tooMany bool
		status  int
	}{{true, 429}, {false, 503}} {
		r := RefusalOf("createTask", &model.Error{Code: model.Overloaded, TooMany: of.tooMany, RetryAfter: time.Minute,
			Message: "the tenant has enough"})
		if r.Status != of.status || r.Body.Error != "overloaded" || r.RetryAfter != time.Minute || r.Body.Message != "The tenant has enough" {
			t.Errorf("%+v", r)
		}
		if item := string(AppendItemRefusal(nil, r)); !strings.Contains(item, `"retryAfterMs":60000`) {
			t.Errorf("of a batch: %s", item)
		}
	}
}
