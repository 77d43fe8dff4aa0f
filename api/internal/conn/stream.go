package conn

import (
	"net"
	"time"
)

// Streams lets the answer that is about to be written on a connection go on for as long as it likes: from here on each write has
// the time that an answer has otherwise, and between two of them there is no deadline. Connections of other listeners are left
// alone. hungUp is called from any goroutine, and may not wait, when the client is found to have ended its side: it may have gone, which
// what is written next brings to light. It is also called when the connection is cut. Where nobody watches the connection for it,
// the end of the client's side is not noticed.
func Streams(c net.Conn, hungUp func()) {
	if c, ok := c.(*Conn); ok {
		c.watch.mu.Lock()
		c.hungUp = hungUp
		c.watch.mu.Unlock()
		c.streams.Store(true)
		if l, ok := c.Conn.(lent); ok {
			l.HungUp(hungUp)
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
