package conn

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// Conn is a connection whose deadlines are enforced by a watch over all connections instead of a timer each. fasthttp moves three
// deadlines for every request; as runtime timers they would cost a heartbeat as much as verifying its token and decoding it together.
// A deadline here is a number. It is enforced late by at most the watch's interval, or by the time it takes to enforce the deadlines
// due with it.
type Conn struct {
	net.Conn
	watch       *Watch
	read, write deadline

	body     atomic.Int64  // reserved for the current body
	bodyOf   shares.Holder // the holder that it is charged to
	bodyRead int64         // of it, past fasthttp's buffer
	refused  error         // why the current body is not read
	last     []byte        // the last read into fasthttp's buffer, valid until the next read
	ahead    []byte        // what has been read ahead and is to be read again

	borrowed bool                // by others, who count it
	readBy   int64               // deadline of a request that began before the loan, ns since the epoch; 0: the deadline that was set
	came     int64               // when it was accepted, ns since the epoch
	since    int64               // when its owner last answered on it, or accepted it, ns since the epoch
	received bool                // something has been read
	muted    bool                // writes are suppressed
	streams  atomic.Bool         // its answer has no time limit
	hungUp   func()              // wakes the writer of such an answer; guarded by watch.mu
	reading  atomic.Bool         // it waits for bytes, so it has no request under way
	writing  atomic.Bool         // it writes an answer
	why      atomic.Pointer[Cut] // why it was cut; nil: it was not

	lastWrite bool // it was cut, and its last answer is being written

	member atomic.Pointer[Member] // nil: it has shown no valid token
}

// deadline is the deadline of one direction of a connection. After the watch has enforced it, setting it again must undo that; the mutex
// orders the two, and is not used otherwise.
type deadline struct {
	at atomic.Int64 // ns since the epoch; 0: never
	mu sync.Mutex
}

const deadlinePassed = -1

func (d *deadline) set(t time.Time, real func(time.Time) error) error {
	at := int64(0)
	if !t.IsZero() {
		at = t.UnixNano()
	}
	if d.at.Swap(at) != deadlinePassed {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return real(time.Time{})
}

func (d *deadline) over(now int64) bool {
	at := d.at.Load()
	return at > 0 && at <= now
}

// pass ends the direction if its deadline has passed: a pending read or write gets a timeout.
func (d *deadline) pass(now int64, real func(time.Time) error) {
	at := d.at.Load()
	if !d.over(now) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.CompareAndSwap(at, deadlinePassed) {
		_ = real(time.Unix(1, 0)) // fails if the connection is already closed
	}
}

// end ends the direction immediately.
func (d *deadline) end(real func(time.Time) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at.Store(deadlinePassed)
	_ = real(time.Unix(1, 0)) // fails if the connection is already closed
}

// SetReadDeadline ends reading at t, or never if t is zero.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if by := c.readBy; by != 0 && t.UnixNano() > by {
		t = time.Unix(0, by)
	}
	return c.read.set(t, c.Conn.SetReadDeadline)
}

// SetWriteDeadline ends writing at t, or never if t is zero.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.write.set(t, c.Conn.SetWriteDeadline)
}

// SetDeadline does both.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// Close closes the connection and releases the memory reserved for its body.
func (c *Conn) Close() error {
	c.watch.bodies.release(c.bodyOf, c.body.Swap(0))
	if l, ok := c.Conn.(borrowed); ok && c.borrowed {
		return c.watch.returned(c, l)
	}
	c.watch.remove(c)
	return c.Conn.Close() // last, since over TLS it may take time
}

// Watch keeps a listener's connections, enforces their deadlines, and cuts those that must go. It is safe for concurrent use.
type Watch struct {
	interval     time.Duration
	writeTimeout time.Duration
	bodies       *Budget // may be nil

	members members
	most    atomic.Int64 // how many connections may have shown a valid token

	walkMu      sync.Mutex
	strangers   []candidate // the next to be cut
	walked      time.Time   // when none was found
	over        []candidate // of members, the next to be cut
	sharesFound time.Time   // when those were found

	mu        sync.Mutex
	listeners []*Listener
	deaf      bool // listeners are closed
	conns     map[*Conn]struct{}
	borrowed  int // of conns, how many are counted by others
	leaving   int // of conns that are not on loan, how many were cut and are not closed yet
	others    []Others
	empty     chan struct{} // closed with the last connection; nil while there is none
}

// NewWatch returns a watch over connections with these timeouts. It enforces them late by at most a tenth of the shortest, or a second.
// If bodies is nil, the memory of bodies is not counted.
func NewWatch(read, write, idle time.Duration, bodies *Budget) *Watch {
	w := &Watch{interval: time.Second, writeTimeout: write, bodies: bodies, conns: map[*Conn]struct{}{}}
	for _, t := range []time.Duration{read, write, idle} {
		w.interval = max(time.Millisecond, min(w.interval, t/10))
	}
	return w
}

// add wraps a connection. The watch runs while there is one.
func (w *Watch) add(c net.Conn) net.Conn {
	now := time.Now().UnixNano()
	p := &Conn{Conn: c, watch: w, came: now, since: now}
	p.reading.Store(true) // its goroutine is about to read
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[p] = struct{}{}
	w.begin()
	return p
}

// begin starts the watch's goroutine unless it runs. The caller holds w.mu.
func (w *Watch) begin() {
	if w.empty == nil {
		w.empty = make(chan struct{})
		go w.run(w.empty)
	}
}

// endIfEmpty stops the watch's goroutine when there is no connection. The caller holds w.mu.
func (w *Watch) endIfEmpty() {
	if len(w.conns)+len(w.others) == 0 && w.empty != nil {
		close(w.empty)
		w.empty = nil
	}
}

// Count returns how many connections there are, and how many of them were cut and are not closed yet.
func (w *Watch) Count() (open, leaving int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open, leaving = len(w.conns)-w.borrowed, w.leaving
	for _, o := range w.others {
		theirs, cut := o.Open()
		open, leaving = open+theirs, leaving+cut
	}
	return open, leaving
}

// Waiting returns the clients of connections that wait for bytes.
func (w *Watch) Waiting() (clients []net.Addr) {
	w.mu.Lock()
	for c := range w.conns {
		if c.reading.Load() {
			clients = append(clients, c.RemoteAddr())
		}
	}
	others := w.others
	w.mu.Unlock()
	for _, o := range others {
		clients = append(clients, o.Waiting()...)
	}
	return clients
}

func (w *Watch) remove(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(c)
}

// forget does what remove does, for a caller that holds w.mu.
func (w *Watch) forget(c *Conn) {
	if _, there := w.conns[c]; !there {
		return
	}
	if c.borrowed {
		w.borrowed--
	} else {
		w.members.leave(c.member.Load())
		if c.why.Load() != nil {
			w.leaving--
		}
	}
	delete(w.conns, c)
	w.endIfEmpty()
}

// returned closes a connection on loan, unless it has been given back, in one step for the watch and its owner.
func (w *Watch) returned(c *Conn, l borrowed) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(c)
	return l.Close()
}

func (w *Watch) run(empty <-chan struct{}) {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-empty:
			return
		case <-tick.C:
			w.sweep(time.Now().UnixNano())
		}
	}
}

// CutsAtOnce is how many deadlines are enforced in a row; then CutPause lets other goroutines run. Clients that connected together are
// due together, and each cut wakes a goroutine, sends an answer and often leads to a new connection: thousands at once would delay
// heartbeats.
const (
	CutsAtOnce = 4
	CutPause   = 4 * time.Millisecond
)

func (w *Watch) sweep(now int64) {
	for due := range slices.Chunk(w.due(now), CutsAtOnce) {
		for _, c := range due {
			c.read.pass(now, c.Conn.SetReadDeadline)
			c.write.pass(now, c.Conn.SetWriteDeadline)
		}
		if len(due) == CutsAtOnce {
			time.Sleep(CutPause)
		}
	}
}

// due returns the connections whose deadline has passed.
func (w *Watch) due(now int64) (due []*Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		if c.read.over(now) || c.write.over(now) {
			due = append(due, c)
		}
	}
	return due
}
