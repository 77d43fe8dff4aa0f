package api

import (
	"net"
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
	server *Server
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
		l.refuse(c)
	}
}

func (l *boundedListener) refuse(c net.Conn) {
	defer c.Close()
	r := refuse(fasthttp.StatusServiceUnavailable, v1.CodeOverloaded,
		"The server has as many open connections as it may; keep connections alive and reuse them, or add servers, or raise the limit")
	r.retryAfter, r.close = defaultRetryAfter, true
	var ctx fasthttp.RequestCtx
	l.server.setRequestID(&ctx, nil)
	l.server.writeRefusal(&ctx, r)
	// A fresh socket's buffer takes it without blocking; the deadline is for odd listeners.
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = ctx.Response.WriteTo(c)
}
