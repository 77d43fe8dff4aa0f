package api

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// patientConn is a connection whose deadlines are kept by a watch over all connections instead of a timer each.
// fasthttp moves three deadlines for every request; as timers of the runtime they cost a beat as much as its
// token and its decoding together. A deadline here is a number, and late by at most the watch's interval, or by what it
// takes to let those pass that are due with it.
type patientConn struct {
	net.Conn
	watch       *connWatch
	read, write connDeadline

	body     atomic.Int64 // reserved for the body under way
	bodyRead int64        // of it, past fasthttp's buffer

	came    int64                   // ns since the epoch
	known   atomic.Bool             // it has shown a valid token
	reading atomic.Bool             // it waits for bytes, so no request of its is under way
	why     atomic.Pointer[refusal] // it was cut; nil: it was not
}

// connDeadline is when one direction of a connection ends. After the watch has let it pass, setting it again
// must take back what the watch did; the mutex orders those two, and is not touched otherwise.
type connDeadline struct {
	at atomic.Int64 // ns since the epoch; 0: never
	mu sync.Mutex
}

const deadlinePassed = -1

func (d *connDeadline) set(t time.Time, real func(time.Time) error) error {
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

func (d *connDeadline) over(now int64) bool {
	at := d.at.Load()
	return at > 0 && at <= now
}

// pass ends the direction when its time has come: whatever waits there gets a timeout.
func (d *connDeadline) pass(now int64, real func(time.Time) error) {
	at := d.at.Load()
	if !d.over(now) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.CompareAndSwap(at, deadlinePassed) {
		_ = real(time.Unix(1, 0)) // fails on a connection that is closed already
	}
}

// end ends the direction at once.
func (d *connDeadline) end(real func(time.Time) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at.Store(deadlinePassed)
	_ = real(time.Unix(1, 0)) // fails on a connection that is closed already
}

func (c *patientConn) SetReadDeadline(t time.Time) error {
	return c.read.set(t, c.Conn.SetReadDeadline)
}
func (c *patientConn) SetWriteDeadline(t time.Time) error {
	return c.write.set(t, c.Conn.SetWriteDeadline)
}

func (c *patientConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

func (c *patientConn) Close() error {
	c.watch.remove(c)
	if held := c.body.Swap(0); held != 0 {
		c.watch.bodies.held.Add(-held)
	}
	return c.Conn.Close()
}

// connWatch lets deadlines pass.
type connWatch struct {
	interval     time.Duration
	writeTimeout time.Duration
	bodies       *bodyBudget // nil: what bodies take is not counted

	strangersMu sync.Mutex
	strangers   []stranger // the next to be cut
	walked      time.Time  // when none was found

	mu      sync.Mutex
	conns   map[*patientConn]struct{}
	leaving int           // of conns, were cut and are not closed yet
	empty   chan struct{} // closed with the last connection; nil while there is none
}

// newConnWatch makes a watch that is late by at most a tenth of the shortest timeout, or a second.
func newConnWatch(read, write, idle time.Duration) *connWatch {
	w := &connWatch{interval: time.Second, writeTimeout: write, conns: map[*patientConn]struct{}{}}
	for _, t := range []time.Duration{read, write, idle} {
		w.interval = max(time.Millisecond, min(w.interval, t/10))
	}
	return w
}

// add takes a connection over. The watch runs while there is one.
func (w *connWatch) add(c net.Conn) net.Conn {
	p := &patientConn{Conn: c, watch: w, came: time.Now().UnixNano()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[p] = struct{}{}
	if w.empty == nil {
		w.empty = make(chan struct{})
		go w.run(w.empty)
	}
	return p
}

// count tells how many connections there are, and how many of them were cut.
func (w *connWatch) count() (open, leaving int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns), w.leaving
}

func (w *connWatch) remove(c *patientConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.conns[c]; there && c.why.Load() != nil {
		w.leaving--
	}
	delete(w.conns, c)
	if len(w.conns) == 0 && w.empty != nil {
		close(w.empty)
		w.empty = nil
	}
}

func (w *connWatch) run(empty <-chan struct{}) {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-empty:
			return
		case <-tick.C:
			w.look(time.Now().UnixNano())
		}
	}
}

// cutsAtOnce are let pass before others have their turn. Clients that came together are due together, and each cut wakes
// a goroutine, sends an answer and often brings a new connection: thousands at once would hold up heartbeats.
const (
	cutsAtOnce = 4
	cutPause   = 4 * time.Millisecond
)

func (w *connWatch) look(now int64) {
	for due := range slices.Chunk(w.due(now), cutsAtOnce) {
		for _, c := range due {
			c.read.pass(now, c.Conn.SetReadDeadline)
			c.write.pass(now, c.Conn.SetWriteDeadline)
		}
		if len(due) == cutsAtOnce {
			time.Sleep(cutPause)
		}
	}
}

// due lists the connections with a deadline that is over.
func (w *connWatch) due(now int64) (due []*patientConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		if c.read.over(now) || c.write.over(now) {
			due = append(due, c)
		}
	}
	return due
}
