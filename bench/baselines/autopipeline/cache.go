package main

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/bench/baselines/internal/frontend"
)

// The cache is divided into pieces, so that its locks are rarely contended, and bounded: a full piece is emptied.
const (
	pieces   = 64
	pieceCap = 1 << 15 // 2,097,152 tokens in all
)

// remember verifies each token once; after that it only checks its expiry. The key is the whole token.
func remember(verify frontend.Verify) frontend.Verify {
	seed := maphash.MakeSeed()
	var cache [pieces]struct {
		sync.RWMutex
		claims map[string]*frontend.Claims
	}
	for i := range cache {
		cache[i].claims = map[string]*frontend.Claims{}
	}
	return func(token []byte) (*frontend.Claims, error) {
		piece := &cache[maphash.Bytes(seed, token)%pieces]
		piece.RLock()
		c := piece.claims[string(token)]
		piece.RUnlock()
		if c != nil && time.Now().Before(c.ExpiresAt.Time) {
			return c, nil
		}
		c, err := verify(token)
		if err != nil {
			return nil, err
		}
		piece.Lock()
		if len(piece.claims) >= pieceCap {
			clear(piece.claims)
		}
		piece.claims[string(token)] = c
		piece.Unlock()
		return c, nil
	}
}
