package conn

import (
	"net"
	"time"
)

// Streams lets the answer that is about to be written on a connection go on for as long as it likes: from here on each write has
// the time that an answer has otherwise, and between two of them there is no deadline. Connections of other listeners are left
// alone. hungUp is called from any goroutine, and may not wait, when the client is found to have ended its side: it may have gone, which
// what is written next brings to light. Where nobody watches the connection it is not called.
func Streams(c net.Conn, hungUp func()) {
	if c, ok := c.(*Conn); ok {
		c.streams.Store(true)
		if l, ok := c.Conn.(lent); ok {
			l.HungUp(hungUp)
		}
	}
}

func (c *Conn) writeStream(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.watch.writeTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if err == nil {
		err = c.SetWriteDeadline(time.Time{})
	}
	return n, err
}
