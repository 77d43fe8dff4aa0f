package token

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Cache keeps verified tokens, each with a value derived from its claims. It is a fixed table of sets of eight: a look-up reads one cache
// line of tags and follows one pointer, takes no lock and allocates nothing. The index comes from the end of the token's signature, which
// is as random as a hash and costs nothing; then the whole token is compared. Expired tokens are not found. The caller of Put must have
// verified the token. A cache belongs to one Keyring, so that the tokens of a removed key are dropped with it.
type Cache[T any] struct {
	sets    []set[T]
	mask    uint64
	owner   func(*T) string // returns the tenant of a value's token
	writers [64]sync.Mutex  // of sets, by index modulo 64

	size      atomic.Int64
	evictions atomic.Uint64
}

// Entry is a cached token. It contains the value, not a pointer to it: with many tokens a look-up is slowed down by each cache line that
// it touches.
type Entry[T any] struct {
	Token   string // a copy, not a slice of the request
	Expires int64  // ms since the epoch
	Value   T
}

const ways = 8

type set[T any] struct {
	tags    [ways]atomic.Uint64
	entries [ways]atomic.Pointer[Entry[T]]
}

// NewCache returns a cache for at least n tokens, with n rounded up to a power of two. owner returns the tenant of a value's token.
func NewCache[T any](n int, owner func(*T) string) *Cache[T] {
	sets := uint64(1)
	if n > ways {
		sets = 1 << bits.Len64(uint64((n+ways-1)/ways)-1)
	}
	return &Cache[T]{sets: make([]set[T], sets), mask: sets - 1, owner: owner}
}

// Len returns how many tokens are cached, including expired ones until another is added to their set.
func (c *Cache[T]) Len() int64 { return c.size.Load() }

// Evictions returns how many valid tokens were evicted.
func (c *Cache[T]) Evictions() uint64 { return c.evictions.Load() }

// place returns a token's set and its tag, which is never 0.
func (c *Cache[T]) place(token []byte) (set uint64, tag uint64, ok bool) {
	if len(token) < 24 {
		return 0, 0, false
	}
	// Characters of base64 have six random bits each, the last one fewer, so the bits are mixed to choose the set.
	tag = binary.LittleEndian.Uint64(token[len(token)-9:])
	set = tag ^ binary.LittleEndian.Uint64(token[len(token)-17:])
	set *= 0x9e3779b97f4a7c15
	return (set >> 32) & c.mask, tag | 1, true
}

// Get returns the value of a token that is valid at now (ms since the epoch), or nil. It does not keep the slice.
// borrowed.
func (c *Cache[T]) Get(token []byte, now int64) *T {
	i, tag, ok := c.place(token)
	if !ok {
		return nil
	}
	set := &c.sets[i]
	for w := range ways {
		if set.tags[w].Load() != tag {
			continue
		}
		if e := set.entries[w].Load(); e != nil && e.Token == string(token) {
			if e.Expires <= now {
				return nil
			}
			return &e.Value
		}
	}
	return nil
}

// Put adds a token. In a full set it replaces the token that expires first of the owner that would have the most tokens there. So an owner
// with very many tokens displaces its own, and not those of owners with fewer. It removes expired tokens of the set: otherwise short-lived
// tokens would fill the cache, however few are valid at a time.
func (c *Cache[T]) Put(e *Entry[T], now int64) {
	i, tag, ok := c.place([]byte(e.Token))
	if !ok {
		return
	}
	mu := &c.writers[i%uint64(len(c.writers))]
	mu.Lock()
	defer mu.Unlock()
	set := &c.sets[i]
	place, free := 0, false
	for w := range ways {
		old := set.entries[w].Load()
		switch {
		case old == nil:
			place, free = w, true
		case old.Token == e.Token:
			return // another goroutine was faster
		case old.Expires <= now:
			c.forget(set, w)
			place, free = w, true
		}
	}
	if free {
		c.size.Add(1)
	} else {
		place = c.victim(set, c.owner(&e.Value))
		c.evictions.Add(1)
	}
	// A concurrent reader finds a tag without its token, or another token than it looks for: a miss.
	set.tags[place].Store(tag)
	set.entries[place].Store(e)
}

// victim returns the index in a full set at which an owner's token is to be stored.
func (c *Cache[T]) victim(s *set[T], owner string) (place int) {
	var owners [ways]string
	for w := range ways {
		owners[w] = c.owner(&s.entries[w].Load().Value)
	}
	most, soonest := 0, int64(0)
	for w := range ways {
		n, expires := 0, s.entries[w].Load().Expires
		if owners[w] == owner {
			n++
		}
		for _, other := range owners {
			if other == owners[w] {
				n++
			}
		}
		if n > most || n == most && expires < soonest {
			place, most, soonest = w, n, expires
		}
	}
	return place
}

// Drop removes all tokens for whose value the function returns true, and returns how many. A concurrent look-up may still find one.
func (c *Cache[T]) Drop(is func(*T) bool) (dropped int) {
	for i := range c.sets {
		dropped += c.dropFrom(i, is)
	}
	return dropped
}

func (c *Cache[T]) dropFrom(i int, is func(*T) bool) (dropped int) {
	mu := &c.writers[i%len(c.writers)]
	mu.Lock()
	defer mu.Unlock()
	set := &c.sets[i]
	for w := range ways {
		if e := set.entries[w].Load(); e != nil && is(&e.Value) {
			c.forget(set, w)
			dropped++
		}
	}
	return dropped
}

// forget removes an entry of a set whose lock is held.
func (c *Cache[T]) forget(set *set[T], way int) {
	set.entries[way].Store(nil)
	set.tags[way].Store(0)
	c.size.Add(-1)
}
