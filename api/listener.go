package api

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// spareConns is how many connections fasthttp takes beyond Config.MaxConns, so that its own refusal, which
// has no JSON and no Retry-After, is hardly ever seen.
const spareConns = 64

// boundedListener answers connections beyond Config.MaxConns with 503 at once, in words that name the limit
// and the remedy.
type boundedListener struct {
	net.Listener
	server     *Server
	handshakes atomic.Int64
}

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if int(l.server.http.GetOpenConnectionsCount()) < l.server.cfg.MaxConns {
			return l.server.watch.add(c), nil
		}
		l.server.metrics.rejectedConns.Inc()
		if l.server.cfg.TLS == nil {
			l.refuse(c)
			continue
		}
		// An answer over TLS takes the client's word first, for which nobody may wait here.
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
