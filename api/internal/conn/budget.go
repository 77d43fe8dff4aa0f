package conn

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Budget bounds the memory of request bodies over all connections. fasthttp allocates a whole body as soon as a header announces
// one, so some thousand connections which announce 4 MiB each and never send them would take all there is. It then reads into
// that memory, past its own buffer: by the length of such a read a connection knows how much it is. Small bodies are not
// counted: connections are bounded, and so are those.
type Budget struct {
	limit   int64
	held    atomic.Int64
	refused func()
}

// NewBudget returns a budget of limit bytes, which calls refused for each body that found no room.
func NewBudget(limit int64, refused func()) *Budget { return &Budget{limit: limit, refused: refused} }

// Held returns how many bytes are reserved.
func (b *Budget) Held() int64 { return b.held.Load() }

// Limit returns how many bytes may be reserved.
func (b *Budget) Limit() int64 { return b.limit }

// Take reserves n bytes, or counts a refusal. A nil budget has no bound.
func (b *Budget) Take(n int64) bool {
	if b == nil || n <= 0 {
		return true
	}
	if b.held.Add(n) > b.limit {
		b.held.Add(-n)
		b.refused()
		return false
	}
	return true
}

// Give gives n reserved bytes back.
func (b *Budget) Give(n int64) {
	if b != nil && n != 0 {
		b.held.Add(-n)
	}
}

// smallBody is up to which size a body need not be reserved.
const smallBody = 16 << 10

// ErrNoRoom is what a connection reads when there is no room for its body.
var ErrNoRoom = errors.New("no room for the body")

// reserve is called when the connection is about to read into n bytes of memory.
func (c *Conn) reserve(n int) error {
	more := c.bodyRead + int64(n) - c.body.Load()
	if more <= 0 {
		return nil
	}
	if !c.watch.bodies.Take(more) {
		return ErrNoRoom
	}
	c.body.Add(more)
	return nil
}

func (c *Conn) Read(p []byte) (int, error) {
	if len(p) <= smallBody || c.watch.bodies == nil {
		return c.await(p)
	}
	if err := c.reserve(len(p)); err != nil {
		return 0, err
	}
	n, err := c.await(p)
	c.bodyRead += int64(n)
	return n, err
}

// await reads, unless or until the connection is cut.
func (c *Conn) await(p []byte) (int, error) {
	c.reading.Store(true)
	defer c.reading.Store(false)
	if why := c.why.Load(); why != nil {
		return 0, why
	}
	if c.readBy != 0 && c.readBy <= time.Now().UnixNano() {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := c.Conn.Read(p)
	c.heard = c.heard || n > 0
	if err != nil && n == 0 {
		if why := c.why.Load(); why != nil {
			return 0, why
		}
	}
	return n, err
}

// Write begins an answer, so the body before it has been used.
func (c *Conn) Write(p []byte) (int, error) {
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
	return c.Conn.Write(p)
}

// MuteUnheard has nothing written any more on a connection from which nothing has come: its client may be sending a request just now,
// and would take it for the answer. Connections of other listeners are left alone.
func MuteUnheard(c net.Conn) {
	if c, ok := c.(*Conn); ok {
		c.muted = !c.heard && !c.lent // those that are lent have sent something
	}
}

func (c *Conn) release() {
	c.bodyRead = 0
	c.watch.bodies.Give(c.body.Swap(0))
}
