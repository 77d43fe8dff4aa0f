package api

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/internal/logs"
)

// What clients receive on connections that are refused or cut.

// bounded returns ln with at most maxConns connections.
func (s *Server) bounded(ln net.Listener, watch *conn.Watch, maxConns, reserve int, slow bool) net.Listener {
	return watch.Listen(ln, s.bound(maxConns, reserve, slow))
}

// reserveOf returns how many connections without a valid token may be open beyond the limit while all others have shown one.
func reserveOf(maxConns int) int { return max(1, min(maxConns/8, conn.MostReserve)) }

func (s *Server) bound(maxConns, reserve int, slow bool) conn.Bound {
	starved := new(logs.Limiter)
	return conn.Bound{
		Max: maxConns, Reserve: reserve, Slow: slow, Refuse: s.refuseConn, Rejected: s.metrics.rejectedConns.Inc,
		Starved: func(err error) {
			s.metrics.starved.Inc()
			if more, ok := starved.Allow(time.Now()); ok {
				s.log.Error("no new connections can be taken: raise the limit of open files (ulimit -n) or lower max-connections",
					"error", err, slog.Int64("moreNotLogged", more))
			}
		},
	}
}

func (s *Server) refuseConn(w io.Writer) {
	var ctx fasthttp.RequestCtx
	s.api.SetRequestID(&ctx, nil)
	s.api.WriteRefusal(&ctx, errTooManyConns)
	_, _ = ctx.Response.WriteTo(w)
}

var (
	errTooManyConns = httpapi.Closing(httpapi.Overloaded(
		"The server has as many open connections as it may; keep connections alive and reuse them, or add servers, or raise the limit"))
	// errDisplaced is the answer to an unauthenticated client that has sent part of a request when its connection is closed for another.
	errDisplaced = httpapi.Closing(httpapi.Overloaded(
		"The server has as many open connections as it may, and this one had shown no valid token for longest; " +
			"send the request whole, on a new connection"))
	// errOverShare refuses a client that has shown a valid token.
	errOverShare = httpapi.Closing(httpapi.Overloaded(
		"The server has as many open connections as it may, and this token, or its tenant, has more of them " +
			"than others that need one; use fewer connections, and send the request again, on a new one"))
)

func bodyBudgetExceeded(b *conn.Budget) *httpapi.Refusal {
	return httpapi.Overloaded(fmt.Sprintf("The request bodies that are under way on this replica take the %d bytes that they may; "+
		"wait as Retry-After says, then retry, or send smaller batches", b.Limit()))
}
