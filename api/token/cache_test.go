package token

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func cached(t testing.TB, k *Keyring, id string, life time.Duration) *Entry[string] {
	t.Helper()
	c := testClaims()
	c.Task = id
	text, expires, err := k.Mint(c, testTime, life)
	if err != nil {
		t.Fatal(err)
	}
	return &Entry[string]{Token: text, Expires: expires.UnixMilli(), Value: id}
}

// ownerOf returns the owner of a test's token: its value up to the underscore.
func ownerOf(value *string) string {
	owner, _, _ := strings.Cut(*value, "_")
	return owner
}

func TestTokenCacheIsBoundedAndKeepsTheNewest(t *testing.T) {
	k := testKeys(t)
	c := NewCache(64, ownerOf)
	now := testTime.UnixMilli()
	const n = 1000
	for i := range n {
		c.Put(cached(t, k, fmt.Sprintf("task_%d", i), time.Hour+time.Duration(i)*time.Second), now)
	}
	if size := c.Len(); size > 64 || size < 48 {
		t.Errorf("%d tokens in a cache of 64", size)
	}
	if got := int64(c.Evictions()) + c.Len(); got != n {
		t.Errorf("%d evicted or kept, want %d", got, n)
	}
	if last := cached(t, k, fmt.Sprintf("task_%d", n-1), time.Hour+(n-1)*time.Second); c.Get([]byte(last.Token), now) == nil {
		t.Error("the newest token, which lives longest, is gone")
	}
}

func TestTokenCacheNeverFindsAnExpiredToken(t *testing.T) {
	k := testKeys(t)
	c := NewCache(8, ownerOf)
	token := cached(t, k, "task_1", time.Hour)
	c.Put(token, testTime.UnixMilli())
	if c.Get([]byte(token.Token), token.Expires-1) != &token.Value {
		t.Error("not found in its last millisecond")
	}
	if c.Get([]byte(token.Token), token.Expires) != nil {
		t.Error("found when it had expired")
	}
	for i := range 8 { // fills the set; the expired one must go first
		c.Put(cached(t, k, fmt.Sprintf("other_%d", i), 2*time.Hour), token.Expires)
	}
	if got := c.Evictions(); got != 0 {
		t.Errorf("%d living tokens were evicted though an expired one was there", got)
	}
}

// Tokens of tasks that are over would keep their memory for as long as the process runs.
func TestTokenCacheForgetsWhatHasExpired(t *testing.T) {
	k := testKeys(t)
	c := NewCache(8, ownerOf)
	var over *Entry[string]
	for i := range 6 {
		over = cached(t, k, fmt.Sprintf("task_%d", i), time.Hour)
		c.Put(over, testTime.UnixMilli())
	}
	holds := cached(t, k, "holds", 2*time.Hour)
	c.Put(holds, testTime.UnixMilli())
	next := cached(t, k, "next", 2*time.Hour)
	c.Put(next, over.Expires)
	c.Put(next, over.Expires) // by a neighbour
	if size, evicted := c.Len(), c.Evictions(); size != 2 || evicted != 0 {
		t.Errorf("%d tokens are remembered and %d were evicted, want the 2 that hold and none", size, evicted)
	}
	for _, e := range []*Entry[string]{holds, next} {
		if c.Get([]byte(e.Token), over.Expires) != &e.Value {
			t.Errorf("%s is not found", e.Value)
		}
	}
}

func TestTokenCacheComparesTheWholeToken(t *testing.T) {
	k := testKeys(t)
	c := NewCache(8, ownerOf)
	token := cached(t, k, "task_1", time.Hour)
	c.Put(token, testTime.UnixMilli())
	for i := range len(token.Token) {
		forged := []byte(token.Token)
		forged[i] ^= 1
		if c.Get(forged, testTime.UnixMilli()) != nil {
			t.Fatalf("a token that differs at %d was found", i)
		}
	}
	for _, short := range []string{"", "x", token.Token[len(token.Token)-20:]} {
		if c.Get([]byte(short), testTime.UnixMilli()) != nil {
			t.Fatalf("%q was found", short)
		}
	}
}

func TestTokenCacheUnderRaces(t *testing.T) {
	k := testKeys(t)
	c := NewCache(16, ownerOf)
	now := testTime.UnixMilli()
	tokens := make([]*Entry[string], 64)
	for i := range tokens {
		tokens[i] = cached(t, k, fmt.Sprintf("task_%d", i), time.Hour)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				for _, token := range tokens {
					if got := c.Get([]byte(token.Token), now); got == nil {
						c.Put(token, now)
					} else if *got != token.Value {
						t.Error("found another token")
					}
				}
			}
		})
	}
	wg.Wait()
	if size := c.Len(); size > 16 {
		t.Errorf("%d tokens in a cache of 16", size)
	}
}

// However many tokens one tenant shows, and however long they are valid, another tenant's tokens stay where they are.
func TestATenantWithManyTokensDisplacesItsOwn(t *testing.T) {
	k := testKeys(t)
	c := NewCache(512, ownerOf)
	now := testTime.UnixMilli()
	var few []*Entry[string]
	for i := range 32 {
		e := cached(t, k, fmt.Sprintf("few_%d", i), time.Hour)
		c.Put(e, now)
		few = append(few, e)
	}
	for i := range 5_000 {
		e := cached(t, k, fmt.Sprintf("many_%d", i), 2*time.Hour)
		c.Put(e, now)
	}
	lost := 0
	for _, e := range few {
		if c.Get([]byte(e.Token), now) == nil {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of the other tenant's %d tokens are forgotten", lost, len(few))
	}
	for _, e := range few { // nor does a full cache keep a tenant out
		c.Drop(func(id *string) bool { return id == &e.Value })
		if c.Put(e, now); c.Get([]byte(e.Token), now) == nil {
			t.Errorf("%s is not remembered", e.Value)
		}
	}
}
