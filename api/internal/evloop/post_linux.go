package evloop

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// mailbox is how other goroutines reach a loop. It wakes the loop once, however many items are put into it.
//
// No wake-up is lost: the loop marks itself as sleeping before it checks the box for the last time, put checks that mark after it has added
// an item, and the first put that finds it set writes to the descriptor. The descriptor is edge-triggered: each write wakes the loop, so
// the loop never drains it and cannot drain a write meant for its next sleep.
type mailbox struct {
	asleep atomic.Bool

	mu     sync.Mutex
	fd     int // an eventfd
	closed bool
	mail   []any
}

func newMailbox() (*mailbox, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &mailbox{fd: fd}, nil
}

// put adds an item. It may be called from any goroutine. Items for a loop that has ended are dropped.
func (b *mailbox) put(m any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.mail = append(b.mail, m)
	if b.asleep.Load() && b.asleep.CompareAndSwap(true, false) {
		one := [8]byte{1}
		_, _ = unix.Write(b.fd, one[:]) // it never fills
	}
}

// sleep marks the loop as about to wait, and reports whether it may: there is no mail.
func (b *mailbox) sleep() bool {
	b.asleep.Store(true)
	b.mu.Lock()
	none := len(b.mail) == 0
	b.mu.Unlock()
	if !none {
		b.asleep.Store(false)
	}
	return none
}

func (b *mailbox) awake() { b.asleep.Store(false) }

// take returns the items, and reuses the memory of spare for the next ones.
func (b *mailbox) take(spare []any) []any {
	clear(spare)
	b.mu.Lock()
	defer b.mu.Unlock()
	mail := b.mail
	b.mail = spare[:0]
	return mail
}

func (b *mailbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.mail = true, nil
	_ = unix.Close(b.fd)
}
