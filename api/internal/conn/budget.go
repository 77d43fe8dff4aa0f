package conn

import (
	"errors"
	"net"

	"github.com/lubdub-io/lubdub/internal/shares"
)

// Budget limits the memory of request bodies over all connections, and each tenant's and token's share of it. fasthttp allocates a whole
// body as soon as a header announces one, so a thousand connections that announce 4 MiB each and never send them could exhaust the
// memory. Small bodies are not counted: the number of connections bounds them.
type Budget struct {
	pool    *shares.Pool
	refused func()
}

// NewBudget returns a budget of limit bytes. It calls refused for each body for which there is no room.
func NewBudget(limit int64, refused func()) *Budget {
	return &Budget{pool: shares.NewPool(limit), refused: refused}
}

// Held returns how many bytes are reserved.
func (b *Budget) Held() int64 { return b.pool.Used() }

// Limit returns how many bytes may be reserved.
func (b *Budget) Limit() int64 { return b.pool.Limit() }

// take reserves n bytes for a holder, or counts a refusal and returns false. A nil budget has no limit.
func (b *Budget) take(h shares.Holder, n int64) bool {
	if b == nil || n <= 0 || b.pool.Take(h, n) == shares.Granted {
		return true
	}
	b.refused()
	return false
}

// release returns n reserved bytes to the budget.
func (b *Budget) release(h shares.Holder, n int64) {
	if b != nil && n != 0 {
		b.pool.Release(h, n)
	}
}

// SmallBody is the largest body that needs no reservation.
const SmallBody = 16 << 10

// Reasons why the body of a request is not read.
var (
	ErrBudgetExceeded = errors.New("no room for the body")
	ErrNoToken        = errors.New("no valid token for a large body")
)

// Charge charges the next body to a holder and reserves n bytes for it; it fails if there is no room. The zero holder is that of all
// clients without a valid token. A body larger than announced reserves the rest when it is read.
func Charge(c net.Conn, h shares.Holder, n int64) error {
	if c, ok := c.(*Conn); ok {
		c.release() // the previous request has been handled
		c.bodyOf = h
		return c.reserve(n)
	}
	return nil
}

// RefuseBody records why the next body is not read.
func RefuseBody(c net.Conn, why error) {
	if c, ok := c.(*Conn); ok {
		c.refused = why
	}
}

// RefusedBody returns why the current body is not read, or nil if it was not refused.
func RefusedBody(c net.Conn) error {
	if c, ok := c.(*Conn); ok {
		return c.refused
	}
	return nil
}

// reserve ensures that n bytes are reserved for the next read.
func (c *Conn) reserve(n int64) error {
	more := c.bodyRead + n - c.body.Load()
	if more <= 0 {
		return nil
	}
	if !c.watch.bodies.take(c.bodyOf, more) {
		return ErrBudgetExceeded
	}
	c.body.Add(more)
	return nil
}

func (c *Conn) release() {
	c.bodyRead = 0
	c.watch.bodies.release(c.bodyOf, c.body.Swap(0))
}
