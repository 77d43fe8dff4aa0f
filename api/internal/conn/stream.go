package conn

import (
	"net"
	"time"
)

// Streams removes the time limit of the answer that is about to be written on a connection: from here on each single write has the write
// timeout, and between two writes there is no deadline. It does nothing to connections of other listeners. hungUp, which must not
// block, is called from any goroutine when the client has ended its side, and when the connection is cut. The client may have gone
// or still read; the next write shows which. If nothing watches the connection, the end of the client's side is not noticed.
func Streams(c net.Conn, hungUp func()) {
	if c, ok := c.(*Conn); ok {
		c.watch.mu.Lock()
		c.hungUp = hungUp
		c.watch.mu.Unlock()
		c.streams.Store(true)
		if l, ok := c.Conn.(borrowed); ok {
			l.HungUp(hungUp)
		}
	}
}

// OnHangUp calls gone, from any goroutine, when the client ends its side of a connection that waits for an answer; nil: no longer.
// gone must not block. If nothing watches the connection, the end of the client's side is not noticed.
func OnHangUp(c net.Conn, gone func()) {
	if c, ok := c.(*Conn); ok {
		if l, ok := c.Conn.(borrowed); ok {
			l.HungUp(gone)
		}
	}
}

func (c *Conn) writeStream(p []byte) (int, error) {
	if why := c.why.Load(); why != nil {
		return 0, why
	}
	if err := c.SetWriteDeadline(time.Now().Add(c.watch.writeTimeout)); err != nil {
		return 0, err
	}
	n, err := c.writeNow(p)
	if err == nil {
		err = c.SetWriteDeadline(time.Time{})
	}
	return n, err
}
