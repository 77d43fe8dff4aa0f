package conn

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// Spare is how many connections a server should accept beyond a listener's Max, so that clients hardly ever see the server's own
	// refusal, which has no JSON and no Retry-After.
	Spare = MostReserve + 96
	// MostReserve is the largest Reserve.
	MostReserve = 64
	// MaxHandshakes bounds how many refused clients get an answer over TLS at a time; further ones are cut off.
	MaxHandshakes = 64

	// mostLeaving is how many connections may be cut but not yet closed.
	mostLeaving = 64
)

// Bound configures how many connections a listener accepts and how it refuses the others.
type Bound struct {
	Max      int             // open connections; one more is refused unless another gives way
	Reserve  int             // further connections for strangers while Max have shown a valid token, so that new clients can show theirs
	Slow     bool            // an answer may have to wait for the client first, as over TLS
	Refuse   func(io.Writer) // answers a connection that is refused
	Rejected func()          // called for each refused connection
	Starved  func(error)     // called each time that accepting fails for lack of a file descriptor
}

// Listener bounds the connections of a server. When the limit is reached, an existing connection gives way to the next; if none may, the
// next is refused immediately. It survives a lack of file descriptors.
type Listener struct {
	net.Listener
	watch *Watch
	bound Bound

	fullSince  time.Time // when there was no room first; zero: there was room for the last connection
	handshakes atomic.Int64
	close      sync.Once
	closed     chan struct{}
}

// Listen returns a listener whose connections come from ln and belong to the watch.
func (w *Watch) Listen(ln net.Listener, b Bound) *Listener {
	l := &Listener{Listener: ln, watch: w, bound: b, closed: make(chan struct{})}
	w.mu.Lock()
	w.listeners = append(w.listeners, l)
	w.most.Store(max(w.most.Load(), int64(b.Max)))
	deaf := w.deaf
	w.mu.Unlock()
	if deaf {
		_ = l.Close()
	}
	return l
}

// StopListening closes the watch's listeners, and those that are added later: a server that is stopped before it serves must not begin
// to serve.
func (w *Watch) StopListening() error {
	w.mu.Lock()
	w.deaf = true
	listeners := w.listeners
	w.mu.Unlock()
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Accept returns the next connection for which there is room, a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.accept()
		if err != nil {
			return nil, err
		}
		switch ok, err := l.await(c); {
		case err != nil:
			return nil, err
		case ok:
			return l.watch.add(c), nil
		}
		if !l.bound.Slow {
			l.refuse(c)
			continue
		}
		// Accept must not wait for the client, so this runs on another goroutine.
		if l.handshakes.Add(1) <= MaxHandshakes {
			go func() {
				defer l.handshakes.Add(-1)
				l.refuse(c)
			}()
			continue
		}
		l.handshakes.Add(-1)
		l.bound.Rejected()
		_ = c.Close()
	}
}

// Waits for file descriptors to be freed: the first, and the longest; each is twice the one before.
const (
	StarvedFirst = 5 * time.Millisecond
	StarvedMost  = time.Second
)

// accept accepts the next connection. If the process or the host has no file descriptor left, it cuts a stranger and tries again.
func (l *Listener) accept() (net.Conn, error) {
	for wait := StarvedFirst; ; wait = min(2*wait, StarvedMost) {
		c, err := l.Listener.Accept()
		if err == nil || !starvedOfFiles(err) {
			return c, err
		}
		l.Starve(err)
		select {
		case <-time.After(wait):
		case <-l.closed:
		}
	}
}

// starvedOfFiles reports whether accepting may succeed later. fasthttp ends the server on such errors.
func starvedOfFiles(err error) bool {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// Starve makes room after accepting has failed for lack of a file descriptor.
func (l *Listener) Starve(err error) {
	l.watch.cutStranger()
	l.bound.Starved(err)
}

const (
	// admitPause is how long a connection waits before the next check for room.
	admitPause = 5 * time.Millisecond
	// admitWait is how long connections wait if none gives way; longer than strangerTime, so that a stranger could have.
	admitWait = 2 * strangerTime
)

// Admit reports whether one more connection may be accepted, and makes room if it can. If a stranger may give way soon, retry is how long
// to wait before the next call; 0 means that the connection is to be refused. Those behind it wait in the kernel's queue, so they are
// served in order, and strangers that reconnect repeatedly do not keep the server busy. Only one goroutine may call it.
func (l *Listener) Admit() (ok bool, retry time.Duration) {
	if l.fit() {
		l.fullSince = time.Time{}
		return true, 0
	}
	if l.fullSince.IsZero() {
		l.fullSince = time.Now()
	}
	if open, _ := l.watch.Count(); open > l.watch.members.count() && time.Since(l.fullSince) < admitWait {
		return false, admitPause
	}
	return false, 0
}

// await waits until there is room for an accepted connection, or until it is to be refused.
func (l *Listener) await(c net.Conn) (ok bool, err error) {
	for {
		ok, retry := l.Admit()
		if retry == 0 {
			return ok, nil
		}
		select {
		case <-time.After(retry):
		case <-l.closed:
			_ = c.Close()
			return false, net.ErrClosed
		}
	}
}

// fit cuts strangers until one more connection fits, and reports whether it succeeded. Connections that were cut do not count; each
// stays open until its request under way is answered.
func (l *Listener) fit() bool {
	for {
		open, leaving := l.watch.Count()
		want := open - leaving + 1
		if want <= l.bound.Max || want <= l.bound.Max+l.bound.Reserve && want-l.watch.members.count() <= l.bound.Reserve {
			return true
		}
		if leaving >= mostLeaving || !l.watch.cutStranger() {
			return false
		}
	}
}

// Close ends Accept, also while it waits for a file descriptor. Connections stay open. It may be called repeatedly.
func (l *Listener) Close() (err error) {
	l.close.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
	})
	return err
}

func (l *Listener) refuse(c net.Conn) {
	defer c.Close()
	// A new socket's buffer takes the answer without blocking; the deadline is for unusual listeners, and for TLS.
	_ = c.SetDeadline(time.Now().Add(time.Second))
	l.Refuse(c)
}

// Refuse answers a connection for which there is no room.
func (l *Listener) Refuse(w io.Writer) {
	l.bound.Rejected()
	l.bound.Refuse(w)
}
