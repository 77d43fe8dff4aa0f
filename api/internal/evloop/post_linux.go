package evloop

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// mailbox is how other goroutines reach a loop. It wakes the loop once, however much is put into it.
//
// No wake-up is lost: the loop says that it sleeps before it looks into the box for the last time, whoever puts something in looks
// whether it sleeps after that, and the first to find it so writes. The descriptor is edge-triggered: each write wakes, so nobody
// has to drain it, nor can drain what was meant for the next sleep.
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

// put may be called from any goroutine. Mail for a loop that has ended is dropped.
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

// sleep says that the loop is about to wait, and reports whether it may: there is no mail.
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

// take returns what has come, and has the next go into the memory of spare.
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
