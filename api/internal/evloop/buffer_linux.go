package evloop

import (
	"math/bits"
	"sync"
)

// buffer is memory for bytes that outlive a turn. A connection without unread bytes has none.
type buffer struct {
	b []byte
}

const (
	leastBuffer = 1 << 10
	mostPooled  = 1 << 20
)

// pools contains free buffers, by the power of two that is their size.
var pools [32]sync.Pool

func class(n int) int { return bits.Len(uint(max(n, leastBuffer) - 1)) }

// newBuffer returns an empty buffer with a capacity of at least n bytes.
func newBuffer(n int) *buffer {
	k := class(n)
	if b, ok := pools[k].Get().(*buffer); ok {
		return b
	}
	return &buffer{b: make([]byte, 0, 1<<k)}
}

func (b *buffer) free() {
	if cap(b.b) <= mostPooled {
		b.b = b.b[:0]
		pools[class(cap(b.b))].Put(b)
	}
}
