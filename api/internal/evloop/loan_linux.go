package evloop

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/internal/shares"
)

// loan is a connection on loan to a goroutine, which reads and writes its descriptor itself and waits here until the loop reports
// that it can. It is a net.Conn for a conn.Watch, which keeps the deadlines: a loan only records that they passed or were reset.
//
// The loop locks only mu, which is never held for long. Reading and Writing are held while the descriptor is in use, so that Close does
// not free it for reuse in the meantime.
type loan struct {
	c      *Conn
	served *conn.Conn // the watch's
	unread *buffer    // what the loop has read; nil: nothing is left of it
	at     int        // offset of the next byte in unread

	reading, writing sync.Mutex

	mu                       sync.Mutex
	changed                  sync.Cond
	readable, writable       bool // since the last attempt
	readPassed, writePassed  bool // the deadline has passed
	closed, returned, idling bool
	cut                      bool   // reads fail instead of waiting
	ended                    uint32 // which of the events in ends have occurred
	hungUp                   func() // called for each of them; nil: not called
}

// ends are the events that a client's end triggers: it has shut its side, or has gone.
const ends = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR

// handOff lends a connection with its unread bytes b for a request. If why is given the connection is cut: the borrower reads no more.
func (l *Loop) handOff(c *Conn, b []byte, why *conn.Cut) {
	h := &loan{c: c}
	h.changed.L = &h.mu
	past := conn.Past{Member: c.member.Load(), Came: c.Came(), Since: c.since.Load(), Why: why}
	if c.begun != 0 {
		past.ReadBy = c.begun + int64(l.front.cfg.ReadTimeout)
	}
	switch {
	case len(b) == 0:
		l.drop(c)
	case c.in != nil: // b is all of it, or its end
		h.unread, h.at = c.in, len(c.in.b)-len(b)
		c.in, c.needs = nil, 0
	default:
		h.unread = newBuffer(len(b))
		h.unread.b = append(h.unread.b, b...)
	}
	c.begun = 0
	c.slot.due.Store(0)
	h.served = l.front.cfg.Watch.Adopt(h, past)
	c.loan.Store(h)
	go l.front.cfg.Serve(h.served)
}

// notify records what the descriptor is ready for. It returns false if the connection has been given back.
func (h *loan) notify(events uint32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.returned {
		return false
	}
	h.readable = h.readable || events&(unix.EPOLLIN|ends) != 0
	h.writable = h.writable || events&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0
	h.changed.Broadcast()
	if events&ends&^h.ended != 0 {
		h.ended |= events & ends
		if h.hungUp != nil {
			h.hungUp()
		}
	}
	return true
}

// HungUp registers f, which must not block, to be called when the client ends its side and when it has gone; immediately if it has. A nil f
// ends that.
func (h *loan) HungUp(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hungUp = f; f != nil && h.ended != 0 {
		f()
	}
}

// Read returns first what the loop has read, then what arrives. Between two requests it returns io.EOF if nothing has arrived: then the
// connection belongs to the loop again.
func (h *loan) Read(p []byte) (int, error) {
	if h.unread != nil {
		n := copy(p, h.unread.b[h.at:])
		if h.at += n; h.at == len(h.unread.b) {
			h.unread.free()
			h.unread = nil
		}
		return n, nil
	}
	if len(p) == 0 {
		return 0, nil
	}
	h.reading.Lock()
	defer h.reading.Unlock()
	for {
		if err := h.mayRead(); err != nil {
			return 0, err
		}
		n, errno := read(h.c.fd, p)
		switch {
		case errno == unix.EAGAIN:
			if h.awaitBytes() {
				return 0, io.EOF
			}
		case errno != 0:
			return 0, os.NewSyscallError("read", errno)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (h *loan) mayRead() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readable = false
	switch {
	case h.closed || h.returned:
		return net.ErrClosed
	case h.readPassed || h.cut:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// awaitBytes waits until there is something to read or, between two requests, gives the connection back and returns true.
func (h *loan) awaitBytes() (back bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idling && !h.readable && !h.closed && !h.readPassed {
		h.giveBack()
		return true
	}
	for !h.readable && !h.readPassed && !h.cut && !h.closed {
		h.changed.Wait()
	}
	return false
}

// giveBack returns the connection to the loop. The caller holds mu, and has checked that there is nothing to read.
func (h *loan) giveBack() {
	c := h.c
	if c.loop.front.stopping.Load() {
		return // Close will end it
	}
	now := time.Now().UnixNano()
	h.returned = true
	c.readable = false
	c.set(flagServed)
	c.since.Store(now)
	c.slot.due.Store(now + int64(c.loop.front.cfg.IdleTimeout))
	c.loan.Store(nil)
	switch { // the loop may have looked earlier, during the loan
	case c.has(flagCut):
		c.loop.mail.put(errand(func(l *Loop) { l.cut(c, conn.Displaced) }))
	case c.loop.front.stopping.Load():
		c.loop.mail.put(errand(func(l *Loop) { l.endIdle(c) }))
	}
}

// Write writes all of p. It fails when the deadline passes before the client has read enough, or when the connection is closed.
func (h *loan) Write(p []byte) (written int, err error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	for written < len(p) {
		if err := h.mayWrite(); err != nil {
			return written, err
		}
		n, errno := write(h.c.fd, p[written:])
		written += n
		switch {
		case errno == unix.EAGAIN:
			if err := h.awaitWritable(); err != nil {
				return written, err
			}
		case errno != 0:
			return written, os.NewSyscallError("write", errno)
		}
	}
	return written, nil
}

func (h *loan) mayWrite() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writable = false
	if h.closed || h.returned {
		return net.ErrClosed
	}
	return nil
}

// awaitWritable waits until the descriptor is writable. It fails when the deadline passes.
func (h *loan) awaitWritable() error {
	if !h.c.watchWritable() {
		return net.ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.writable && !h.writePassed && !h.closed {
		h.changed.Wait()
	}
	if h.writePassed {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Close closes the connection unless it has been given back.
func (h *loan) Close() error {
	h.mu.Lock()
	if h.closed || h.returned {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.changed.Broadcast()
	h.mu.Unlock()
	h.reading.Lock()
	h.writing.Lock()
	defer h.reading.Unlock()
	defer h.writing.Unlock()
	h.c.loop.forget(h.c)
	return nil
}

// Cut closes the connection after the request under way, and stops reads from waiting.
func (h *loan) Cut(why *conn.Cut) bool {
	h.mu.Lock()
	h.cut = true
	h.changed.Broadcast()
	h.mu.Unlock()
	return h.c.leave(why)
}

// Idle records whether the next byte read begins a request.
func (h *loan) Idle(yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idling = yes
}

// Known records that the connection has shown a valid token, even if it has been given back.
func (h *loan) Known(holder shares.Holder) *conn.Member { return h.c.Known(holder) }

func (h *loan) LocalAddr() net.Addr  { return local(h.c.fd) }
func (h *loan) RemoteAddr() net.Addr { return remote(h.c.fd) }

func (h *loan) pass(passed *bool, t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	*passed = !t.IsZero() && !t.After(time.Now())
	h.changed.Broadcast()
	return nil
}

// SetReadDeadline makes reads fail if t has passed, and lets them wait otherwise. It starts no timer.
func (h *loan) SetReadDeadline(t time.Time) error { return h.pass(&h.readPassed, t) }

// SetWriteDeadline does the same for writes.
func (h *loan) SetWriteDeadline(t time.Time) error { return h.pass(&h.writePassed, t) }

// SetDeadline does both.
func (h *loan) SetDeadline(t time.Time) error {
	_ = h.SetReadDeadline(t)
	return h.SetWriteDeadline(t)
}
