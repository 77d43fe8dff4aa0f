package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Pool is a generator with a goroutine for each connection, so that its sources may wait.
type Pool struct {
	conns []*conn
}

// portsPerAddress is how many connections use one local loopback address: an address has some 28,000 ports by default, and those of
// closed connections are blocked for a minute.
const portsPerAddress = 10_000

const dialTimeout = 10 * time.Second

// sourceOf returns the local loopback address of connection i; nil: the system's choice.
func sourceOf(i int) net.IP {
	if i < portsPerAddress {
		return nil
	}
	return net.IPv4(127, 0, 0, byte(1+i/portsPerAddress))
}

// explained adds advice to the error when connection i could not be opened.
func explained(err error, i int) error {
	if errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("the limit of open files is reached after %d connections; raise it with ulimit -n, or ask for fewer: %w", i, err)
	}
	return err
}

// dial opens connection i.
func dial(ctx context.Context, address string, i int) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, Control: bindLate}
	if from := sourceOf(i); from != nil && strings.HasPrefix(address, "127.0.0.1:") {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	return d.DialContext(ctx, "tcp", address)
}

var errNoConnections = errors.New("a generator needs a connection")

// Dial opens n connections to host:port.
func Dial(ctx context.Context, address string, n int) (*Pool, error) {
	if n < 1 {
		return nil, errNoConnections
	}
	p := &Pool{}
	for i := range n {
		c := &conn{dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, address, i) }}
		if err := c.connect(ctx); err != nil {
			p.Close()
			return nil, explained(err, i)
		}
		p.conns = append(p.conns, c)
	}
	return p, nil
}

// Run implements Generator.
func (p *Pool) Run(ctx context.Context, l Load) (Result, error) { return conduct(ctx, l, p) }

// Size returns the number of connections.
func (p *Pool) Size() int { return len(p.conns) }

// Close closes every connection.
func (p *Pool) Close() {
	for _, c := range p.conns {
		c.close()
	}
}

func (p *Pool) parts() int { return len(p.conns) }

func (p *Pool) answers() (n int64) {
	for _, c := range p.conns {
		n += c.answers.Load()
	}
	return n
}

func (p *Pool) interrupt() {
	for _, c := range p.conns {
		c.interrupt()
	}
}

// maxRedials is how often in a row a connection is dialled again.
const maxRedials = 50

// drive is one connection's part of a run.
func (p *Pool) drive(r *run, i int, t *Tally) error {
	c, n := p.conns[i], len(p.conns)
	c.answers.Store(0)
	source := r.Source(i, n)
	var plan *schedule
	if r.PerSecond > 0 {
		plan = newSchedule(i, n, r.PerSecond, r.Poisson)
	}
	for first := true; !r.stop.Load(); first = false {
		free := r.clock.now()
		intended := free
		if plan != nil {
			intended = plan.take()
		}
		if r.For > 0 && intended >= r.For && (plan != nil || !first) { // a closed loop sends its first request however late that is
			return nil
		}
		if plan != nil && !r.clock.sleepUntil(r.ctx, intended) {
			return nil
		}
		if plan != nil && r.For > 0 && r.clock.now() > r.For+grace {
			for ; intended < r.For; intended = plan.take() {
				t.Refused(NotSent, 1)
			}
			return nil
		}
		if c.out = source.Next(c.out[:0]); c.out == nil {
			return nil
		}
		sent := r.clock.now()
		if plan == nil {
			intended = sent
		}
		status, body, err := c.do()
		if err != nil {
			if r.stop.Load() {
				return nil
			}
			t.Refused(reason(err), 1)
			if err := r.reconnect(c); err != nil {
				return err
			}
			continue
		}
		done := r.clock.now()
		beats := source.Answered(status, body, t)
		t.Requests++
		t.Beats += int64(beats)
		c.answers.Add(1)
		r.recorder.record(i, times{intended, free, sent, done})
	}
	return nil
}

func (r *run) reconnect(c *conn) (err error) {
	for range maxRedials {
		if err = c.connect(r.ctx); err == nil {
			return nil
		}
		select {
		case <-r.ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("the server takes no connections any more: %w", err)
}

// reason returns a short text for an error, the same for all errors of its kind.
func reason(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer"
	case errors.Is(err, net.ErrClosed):
		return "connection closed"
	case err.Error() == "EOF":
		return "connection closed by the server"
	}
	return err.Error()
}
