package api

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"
)

// tokenCache remembers verified task tokens. It is a fixed table of sets of eight: a look-up reads one cache
// line of tags and follows one pointer, takes no lock and allocates nothing. A token's place comes from the
// end of its signature, which is as random as a hash and costs nothing; what decides is the comparison of
// the whole token. Only tokens that were verified get in, and none is found past its expiry.
type tokenCache struct {
	sets    []tokenSet
	mask    uint64
	writers [64]sync.Mutex // of sets, by index modulo 64

	size      atomic.Int64
	evictions atomic.Uint64
}

const ways = 8

type tokenSet struct {
	tags   [ways]atomic.Uint64
	tokens [ways]atomic.Pointer[taskToken]
}

// newTokenCache makes a cache of at least n tokens, n rounded up to a power of two.
func newTokenCache(n int) *tokenCache {
	sets := uint64(1)
	if n > ways {
		sets = 1 << bits.Len64(uint64((n+ways-1)/ways)-1)
	}
	return &tokenCache{sets: make([]tokenSet, sets), mask: sets - 1}
}

// place gives a token's set and its tag, which is never 0.
func (c *tokenCache) place(raw []byte) (set uint64, tag uint64, ok bool) {
	if len(raw) < 24 {
		return 0, 0, false
	}
	// Characters of base64 carry six random bits each and the last one less, so the set is drawn from a mix.
	tag = binary.LittleEndian.Uint64(raw[len(raw)-9:])
	set = tag ^ binary.LittleEndian.Uint64(raw[len(raw)-17:])
	set *= 0x9e3779b97f4a7c15
	return (set >> 32) & c.mask, tag | 1, true
}

// get finds a token that still holds at now (ms since the epoch), nil when there is none. raw may be
// borrowed.
func (c *tokenCache) get(raw []byte, now int64) *taskToken {
	i, tag, ok := c.place(raw)
	if !ok {
		return nil
	}
	set := &c.sets[i]
	for w := range ways {
		if set.tags[w].Load() != tag {
			continue
		}
		if t := set.tokens[w].Load(); t != nil && t.raw == string(raw) {
			if t.expires <= now {
				return nil
			}
			return t
		}
	}
	return nil
}

// put remembers a token. In a full set it takes the place of an expired one, else of the one that expires
// first.
func (c *tokenCache) put(t *taskToken, now int64) {
	i, tag, ok := c.place([]byte(t.raw))
	if !ok {
		return
	}
	mu := &c.writers[i%uint64(len(c.writers))]
	mu.Lock()
	defer mu.Unlock()
	set := &c.sets[i]
	victim := 0
	var soonest int64
	for w := range ways {
		old := set.tokens[w].Load()
		if old == nil {
			victim, soonest = w, -1
			break
		}
		if old.raw == t.raw {
			return // a neighbour was faster
		}
		if w == 0 || old.expires < soonest {
			victim, soonest = w, old.expires
		}
	}
	switch {
	case soonest < 0:
		c.size.Add(1)
	case soonest > now:
		c.evictions.Add(1)
	}
	// A reader in between finds a tag without its token, or a token that is not the one it looks for: a miss.
	set.tags[victim].Store(tag)
	set.tokens[victim].Store(t)
}
