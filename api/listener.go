package api

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// spareConns is how many connections fasthttp takes beyond a listener's bound, so that its own refusal, which
// has no JSON and no Retry-After, is hardly ever seen.
const spareConns = 64

// boundedListener bounds the connections of a server. When all are taken, the one that has been idle longest and has shown
// no valid token gives its place to the next; where there is none, the next is answered 503 at once, in words that name the
// limit and the remedy. It outlives a lack of file descriptors.
type boundedListener struct {
	net.Listener
	server *Server
	watch  *connWatch
	max    int
	slow   bool // its answers may take a client's word first, as over TLS

	handshakes atomic.Int64
	starved    logLimiter
	close      sync.Once
	closed     chan struct{}
}

func (s *Server) bounded(ln net.Listener, watch *connWatch, maxConns int, slow bool) *boundedListener {
	return &boundedListener{
		Listener: ln, server: s, watch: watch, max: maxConns, slow: slow, closed: make(chan struct{}),
	}
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.accept()
		if err != nil {
			return nil, err
		}
		if l.room() {
			return l.watch.add(c), nil
		}
		l.server.metrics.rejectedConns.Inc()
		if !l.slow {
			l.refuse(c)
			continue
		}
		// Nobody may wait for that word here.
		if l.handshakes.Add(1) <= maxHandshakes {
			go func() {
				defer l.handshakes.Add(-1)
				l.refuse(c)
			}()
			continue
		}
		l.handshakes.Add(-1)
		_ = c.Close()
	}
}

// maxHandshakes bounds how many refused clients are told why over TLS at a time; more are cut off.
const maxHandshakes = 64

// Waits for file descriptors to come free.
const (
	starvedFirst = 5 * time.Millisecond
	starvedMost  = time.Second
)

// accept takes the next connection. Where the process or the machine has no file descriptor left for it, a stranger's is
// cut, and it is tried again.
func (l *boundedListener) accept() (net.Conn, error) {
	for wait := starvedFirst; ; wait = min(2*wait, starvedMost) {
		c, err := l.Listener.Accept()
		if err == nil || !starvedOfFiles(err) {
			return c, err
		}
		l.server.metrics.starved.Inc()
		l.watch.cutStranger()
		if more, ok := l.starved.allow(time.Now()); ok {
			l.server.log.Error("no new connections can be taken: raise the limit of open files (ulimit -n) or lower max-connections",
				"cause", err, slog.Int64("more_not_logged", more))
		}
		select {
		case <-time.After(wait):
		case <-l.closed:
		}
	}
}

// starvedOfFiles tells whether there may be room for the connection later. To fasthttp such errors end the server.
func starvedOfFiles(err error) bool {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// room tells whether one more connection may come, and makes room where it can. Those that were cut stay for the moment
// that their goroutines take to end.
func (l *boundedListener) room() bool {
	open, leaving := l.watch.count()
	if open-leaving < l.max {
		return true
	}
	return leaving < spareConns/2 && l.watch.cutStranger()
}

func (l *boundedListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (l *boundedListener) refuse(c net.Conn) {
	defer c.Close()
	// A fresh socket's buffer takes the answer without blocking; the deadline is for odd listeners, and for TLS.
	_ = c.SetDeadline(time.Now().Add(time.Second))
	r := refuse(fasthttp.StatusServiceUnavailable, v1.CodeOverloaded,
		"The server has as many open connections as it may; keep connections alive and reuse them, or add servers, or raise the limit")
	r.retryAfter, r.close = defaultRetryAfter, true
	var ctx fasthttp.RequestCtx
	l.server.setRequestID(&ctx, nil)
	l.server.writeRefusal(&ctx, r)
	_, _ = ctx.Response.WriteTo(c)
}
