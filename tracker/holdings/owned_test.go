package holdings

import (
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
)

func TestOwnedCacheEnds(t *testing.T) {
	c := newOwnedCache()
	in, n := model.Scope{Tenant: "acme", Workspace: "prod"}, OwnedAttempt{TaskID: "daily", Number: 1}
	a := &model.Attempt{TaskID: "daily"}
	c.put(in, "w1", n, a)
	if c.get(in, "w1", n) != a {
		t.Error("an entry is not found")
	}
	e, _ := c.of.Peek(ownedKey(in, "w1", n))
	e.until = e.until.Add(-ownedLife)
	c.of.Add(ownedKey(in, "w1", n), e)
	if c.get(in, "w1", n) != nil {
		t.Error("an entry is found after its end")
	}
	if ownedLife >= model.MinFinishedRetention {
		t.Error("an entry may outlive its task")
	}
}
