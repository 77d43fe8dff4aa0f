package evloop

import (
	"sync"
	"sync/atomic"
)

// table maps descriptors, which the system keeps small and dense, to the connections of all loops.
type table struct {
	chunks atomic.Pointer[[]*chunk]
	mu     sync.Mutex // held while chunks are added
}

// slot is the entry of a descriptor. It contains the deadline so that a scan reads consecutive memory.
type slot struct {
	conn atomic.Pointer[Conn]
	due  atomic.Int64 // when its loop must check it, ns since the epoch; 0: never
}

const chunkSize = 1 << 10

type chunk [chunkSize]slot

// at returns the slot of a descriptor, or nil if it has none yet.
func (t *table) at(fd int32) *slot {
	chunks := t.chunks.Load()
	if i := int(fd) / chunkSize; chunks != nil && i < len(*chunks) {
		return &(*chunks)[i][fd%chunkSize]
	}
	return nil
}

// grow returns the slot of a descriptor, and creates it if necessary.
func (t *table) grow(fd int32) *slot {
	if s := t.at(fd); s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var chunks []*chunk
	if now := t.chunks.Load(); now != nil {
		chunks = append(chunks, *now...)
	}
	for len(chunks) <= int(fd)/chunkSize {
		chunks = append(chunks, new(chunk))
	}
	t.chunks.Store(&chunks)
	return &chunks[fd/chunkSize][fd%chunkSize]
}

// size returns how many slots there are.
func (t *table) size() int {
	if chunks := t.chunks.Load(); chunks != nil {
		return len(*chunks) * chunkSize
	}
	return 0
}

// each calls do for every connection.
func (t *table) each(do func(*Conn)) {
	for fd := range t.size() {
		if c := t.at(int32(fd)).conn.Load(); c != nil {
			do(c)
		}
	}
}
