package api

import (
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// A tenant that has as much as it may is told 429 and when to come again, of a batch too; a replica that is full says 503.
func TestTooMuchOfATenantIsNotThisReplicasTrouble(t *testing.T) {
	for _, of := range []struct {
		tooMany bool
		status  int
	}{{true, 429}, {false, 503}} {
		r := refusalOf(opCreate, &tracker.Error{Code: tracker.Overloaded, TooMany: of.tooMany, RetryAfter: time.Minute, Message: "the tenant has enough"})
		if r.status != of.status || r.body.Error != "overloaded" || r.retryAfter != time.Minute || r.body.Message != "The tenant has enough" {
			t.Errorf("%+v", r)
		}
		if item := string(appendItemRefusal(nil, r)); !strings.Contains(item, `"retryAfterMs":60000`) {
			t.Errorf("of a batch: %s", item)
		}
	}
}
