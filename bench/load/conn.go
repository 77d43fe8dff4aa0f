package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// conn is one keep-alive connection with at most one request under way. Only its goroutine uses it, except for the counters and, at the
// end, the socket's deadline.
type conn struct {
	dial   func(context.Context) (net.Conn, error)
	socket atomic.Pointer[net.Conn]

	out  []byte // the request
	in   []byte // what was read
	used int    // the length of the previous answer in in

	answers atomic.Int64 // in the current run
}

var errTooLarge = errors.New("an answer of more than 64 MiB")

const (
	firstBuffer = 4 << 10
	maxAnswer   = 64 << 20
)

func (c *conn) connect(ctx context.Context) error {
	c.close()
	s, err := c.dial(ctx)
	if err != nil {
		return err
	}
	c.socket.Store(&s)
	c.in, c.used = c.in[:0], 0
	return nil
}

func (c *conn) close() {
	if s := c.socket.Swap(nil); s != nil {
		_ = (*s).Close()
	}
}

// interrupt makes pending reads and writes on the socket return at once.
func (c *conn) interrupt() {
	if s := c.socket.Load(); s != nil {
		_ = (*s).SetDeadline(time.Unix(1, 0))
	}
}

// do sends c.out and reads the answer. The body is valid until the next call.
func (c *conn) do() (status int, body []byte, err error) {
	s := *c.socket.Load()
	if _, err := s.Write(c.out); err != nil {
		return 0, nil, err
	}
	return c.read(s)
}

func (c *conn) read(s net.Conn) (status int, body []byte, err error) {
	c.in = c.in[:copy(c.in, c.in[c.used:])]
	c.used = 0
	for {
		status, body, c.used, err = answerIn(c.in)
		if err != nil || c.used > 0 {
			return status, body, err
		}
		if len(c.in) == cap(c.in) {
			c.in = slices.Grow(c.in, max(firstBuffer, len(c.in)))
		}
		n, err := s.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		if n == 0 && err != nil {
			return 0, nil, err
		}
	}
}

var (
	crlf2         = []byte("\r\n\r\n")
	crlf          = []byte("\r\n")
	contentLength = []byte("content-length:")
)

// parseHead parses the status and the length of the body.
func parseHead(head []byte) (status, length int, err error) {
	// HTTP/1.1 200 OK
	if len(head) < 12 || string(head[:7]) != "HTTP/1." || head[8] != ' ' {
		return 0, 0, fmt.Errorf("no HTTP answer: %.40q", head)
	}
	if status, err = number(head[9:12]); err != nil {
		return 0, 0, fmt.Errorf("no HTTP answer: %.40q", head)
	}
	for rest := head; ; {
		i := bytes.Index(rest, crlf)
		if i < 0 {
			return 0, 0, fmt.Errorf("an answer %d without a Content-Length: the generator reads no other", status)
		}
		rest = rest[i+len(crlf):]
		if len(rest) >= len(contentLength) && equalFold(rest[:len(contentLength)], contentLength) {
			line := rest[len(contentLength):]
			if i := bytes.Index(line, crlf); i >= 0 {
				line = line[:i]
			}
			if length, err = number(bytes.TrimSpace(line)); err != nil {
				return 0, 0, fmt.Errorf("an answer with Content-Length %.40q", line)
			}
			return status, length, nil
		}
	}
}

// answerIn finds the first answer in the bytes read: its body, and its total length. 0: it is incomplete.
func answerIn(in []byte) (status int, body []byte, size int, err error) {
	i := bytes.Index(in, crlf2)
	if i < 0 {
		return 0, nil, 0, nil
	}
	head := i + len(crlf2)
	status, length, err := parseHead(in[:head])
	switch size = head + length; {
	case err != nil:
		return 0, nil, 0, err
	case size > maxAnswer:
		return 0, nil, 0, errTooLarge
	case size > len(in):
		return 0, nil, 0, nil
	}
	return status, in[head:size], size, nil
}

// equalFold compares with a text in lower case; bytes.EqualFold is slower because of Unicode.
func equalFold(b, lower []byte) bool {
	for i, x := range b {
		if 'A' <= x && x <= 'Z' {
			x += 'a' - 'A'
		}
		if x != lower[i] {
			return false
		}
	}
	return true
}

func number(b []byte) (n int, err error) {
	if len(b) == 0 || len(b) > 9 {
		return 0, errors.New("not a number")
	}
	for _, x := range b {
		if x < '0' || x > '9' {
			return 0, errors.New("not a number")
		}
		n = 10*n + int(x-'0')
	}
	return n, nil
}
