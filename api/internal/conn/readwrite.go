package conn

import (
	"net"
	"os"
	"time"
)

// Read reads into fasthttp's buffer or into the memory of a body; it tells them apart by the length of p.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) <= SmallBody || c.watch.bodies == nil {
		n, err := c.next(p)
		c.last = p[:n]
		return n, err
	}
	if err := c.reserve(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := c.next(p)
	c.bodyRead += int64(n)
	return n, err
}

// next returns what was read ahead, then reads.
func (c *Conn) next(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		return c.await(p)
	}
	n := copy(p, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		c.ahead = nil
	}
	return n, nil
}

// Ahead passes the end of what has been read to a function, then also what arrives, until the function returns true, it has seen `most`
// bytes, or no more arrive. It reports whether the function returned true. Read later returns what was read ahead. Ahead must be
// called where Read would be.
func Ahead(c net.Conn, most int, enough func(seen []byte) bool) bool {
	if c, ok := c.(*Conn); ok {
		return c.readAhead(most, enough)
	}
	return false
}

func (c *Conn) readAhead(most int, enough func([]byte) bool) bool {
	if len(c.ahead) == 0 && enough(c.last) {
		return true
	}
	came := len(c.last)
	seen := append(append(make([]byte, 0, max(most, came+len(c.ahead))), c.last...), c.ahead...)
	for {
		if enough(seen) {
			break
		}
		if len(seen) == cap(seen) {
			return false
		}
		n, err := c.await(seen[len(seen):cap(seen)])
		seen = seen[:len(seen)+n]
		c.ahead = seen[came:]
		if err != nil {
			return n > 0 && enough(seen) // Read meets the error again
		}
	}
	return true
}

// await reads, unless or until the connection is cut.
func (c *Conn) await(p []byte) (int, error) {
	c.reading.Store(true)
	defer c.reading.Store(false)
	if why := c.why.Load(); why != nil && !c.borrowed { // bytes that were read before the loan are served
		return 0, why
	}
	if c.readBy != 0 && c.readBy <= time.Now().UnixNano() {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := c.Conn.Read(p)
	c.received = c.received || n > 0
	if err != nil && n == 0 {
		if why := c.why.Load(); why != nil {
			return 0, why
		}
	}
	return n, err
}

// Continue is the interim answer to "Expect: 100-continue": the request's body follows it.
const Continue = "HTTP/1.1 100 Continue\r\n\r\n"

// Write begins an answer, so the body before it is no longer in use.
func (c *Conn) Write(p []byte) (int, error) {
	if string(p) == Continue {
		return c.writeNow(p)
	}
	if c.body.Load() != 0 {
		c.release()
	}
	c.readBy = 0
	if c.muted {
		return len(p), nil
	}
	if c.streams.Load() {
		return c.writeStream(p)
	}
	return c.writeNow(p)
}

// lastAnswer is how long the answer on a connection that was cut may take: others wait for its place. The part that the socket buffers is
// written immediately.
const lastAnswer = 50 * time.Millisecond

// writeNow writes, unless or until the connection is cut.
func (c *Conn) writeNow(p []byte) (int, error) {
	c.writing.Store(true)
	defer c.writing.Store(false)
	if c.why.Load() != nil && !c.lastWrite {
		c.lastWrite = true
		time.AfterFunc(lastAnswer, func() { c.write.end(c.Conn.SetWriteDeadline) })
	}
	return c.Conn.Write(p)
}

// MuteUnheard suppresses all writes on a connection that has received nothing: its client may be sending a request just now, and would
// take the bytes for its answer. It does nothing to connections of other listeners.
func MuteUnheard(c net.Conn) {
	if c, ok := c.(*Conn); ok {
		c.muted = !c.received && !c.borrowed // connections on loan have received something
	}
}
