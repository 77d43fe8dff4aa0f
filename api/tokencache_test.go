package api

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

func cached(t testing.TB, k *Keyring, id string, life time.Duration) *taskToken {
	t.Helper()
	a := testAttempt()
	a.TaskID = id
	raw, _, err := k.mintTask(a, life, true)
	if err != nil {
		t.Fatal(err)
	}
	c, err := k.verify(raw, fakeTime)
	if err != nil {
		t.Fatal(err)
	}
	return newTaskToken(raw, c, a)
}

func TestTokenCacheIsBoundedAndKeepsTheNewest(t *testing.T) {
	k := testKeys(t)
	c := newTokenCache(64)
	now := fakeTime.UnixMilli()
	const n = 1000
	for i := range n {
		c.put(cached(t, k, fmt.Sprintf("task_%d", i), time.Hour+time.Duration(i)*time.Second), now)
	}
	if size := c.size.Load(); size > 64 || size < 48 {
		t.Errorf("%d tokens in a cache of 64", size)
	}
	if got := int64(c.evictions.Load()) + c.size.Load(); got != n {
		t.Errorf("%d evicted or kept, want %d", got, n)
	}
	if last := cached(t, k, fmt.Sprintf("task_%d", n-1), time.Hour+(n-1)*time.Second); c.get([]byte(last.raw), now) == nil {
		t.Error("the newest token, which lives longest, is gone")
	}
}

func TestTokenCacheNeverFindsAnExpiredToken(t *testing.T) {
	k := testKeys(t)
	c := newTokenCache(8)
	token := cached(t, k, "task_1", time.Hour)
	c.put(token, fakeTime.UnixMilli())
	if c.get([]byte(token.raw), token.expires-1) != token {
		t.Error("not found in its last millisecond")
	}
	if c.get([]byte(token.raw), token.expires) != nil {
		t.Error("found when it had expired")
	}
	for i := range 8 { // fills the set; the expired one must go first
		c.put(cached(t, k, fmt.Sprintf("other_%d", i), 2*time.Hour), token.expires)
	}
	if got := c.evictions.Load(); got != 0 {
		t.Errorf("%d living tokens were evicted though an expired one was there", got)
	}
}

func TestTokenCacheComparesTheWholeToken(t *testing.T) {
	k := testKeys(t)
	c := newTokenCache(8)
	token := cached(t, k, "task_1", time.Hour)
	c.put(token, fakeTime.UnixMilli())
	for i := range len(token.raw) {
		forged := []byte(token.raw)
		forged[i] ^= 1
		if c.get(forged, fakeTime.UnixMilli()) != nil {
			t.Fatalf("a token that differs at %d was found", i)
		}
	}
	for _, short := range []string{"", "x", token.raw[len(token.raw)-20:]} {
		if c.get([]byte(short), fakeTime.UnixMilli()) != nil {
			t.Fatalf("%q was found", short)
		}
	}
}

func TestTokenCacheUnderRaces(t *testing.T) {
	k := testKeys(t)
	c := newTokenCache(16)
	now := fakeTime.UnixMilli()
	tokens := make([]*taskToken, 64)
	for i := range tokens {
		tokens[i] = cached(t, k, fmt.Sprintf("task_%d", i), time.Hour)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				for _, token := range tokens {
					if got := c.get([]byte(token.raw), now); got == nil {
						c.put(token, now)
					} else if got.raw != token.raw {
						t.Error("found another token")
					}
				}
			}
		})
	}
	wg.Wait()
	if size := c.size.Load(); size > 16 {
		t.Errorf("%d tokens in a cache of 16", size)
	}
}

// The cache must not keep what belongs to a request: fasthttp writes the next one over it.
func TestTokenCacheHoldsItsOwnCopies(t *testing.T) {
	e := newEnv(t)
	mine, other := e.task(), e.task(func(a *tracker.Attempt) { a.TaskID = "task_2" })
	for range 3 {
		e.do("POST", "/v1/tasks/task_1/heartbeat", mine, `{"attempt":1}`).want(200)
		e.do("POST", "/v1/tasks/task_2/heartbeat", other, `{"attempt":1}`).want(200)
		e.do("POST", "/v1/tasks/task_1/heartbeat", other, `{"attempt":1}`).refused(403, "forbidden")
	}
	if e.fake.named != 2 {
		t.Errorf("%d attempts were named, want one for each token", e.fake.named)
	}
}
