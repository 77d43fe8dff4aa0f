package api

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// bodyBudget bounds the memory of request bodies, all connections together. fasthttp makes room for a whole body as
// soon as a header announces one, so that some thousand connections which announce 4 MiB each and never send them would
// take all there is. It then reads into that room, past its own buffer: by the length of such a read a connection knows
// how much it is. Small bodies are not counted: connections are bounded, and so are those.
type bodyBudget struct {
	limit   int64
	held    atomic.Int64
	refused func()
}

// smallBody need not be reserved.
const smallBody = 16 << 10

// errBodyBudget is what a connection reads when there is no room for its body.
var errBodyBudget = errors.New("no room for the body")

// reserve is told that the connection is about to read into room of n bytes.
func (c *patientConn) reserve(n int) error {
	more := c.bodyRead + int64(n) - c.body.Load()
	if more <= 0 {
		return nil
	}
	b := c.watch.bodies
	if b.held.Add(more) > b.limit {
		b.held.Add(-more)
		b.refused()
		return errBodyBudget
	}
	c.body.Add(more)
	return nil
}

func (c *patientConn) Read(p []byte) (int, error) {
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
func (c *patientConn) await(p []byte) (int, error) {
	c.reading.Store(true)
	defer c.reading.Store(false)
	if r := c.why.Load(); r != nil {
		return 0, r
	}
	n, err := c.Conn.Read(p)
	if err != nil && n == 0 {
		if r := c.why.Load(); r != nil {
			return 0, r
		}
	}
	return n, err
}

// Write begins an answer, so the body before it has been used.
func (c *patientConn) Write(p []byte) (int, error) {
	if c.body.Load() != 0 {
		c.release()
	}
	return c.Conn.Write(p)
}

func (c *patientConn) release() {
	c.bodyRead = 0
	c.watch.bodies.held.Add(-c.body.Swap(0))
}

func (b *bodyBudget) refusal() *refusal {
	r := refuse(fasthttp.StatusServiceUnavailable, v1.CodeOverloaded, fmt.Sprintf(
		"The request bodies that are under way on this replica take the %d bytes that they may (max-body-bytes); wait as Retry-After says, then retry, or send smaller batches", b.limit))
	r.retryAfter = defaultRetryAfter
	return r
}
