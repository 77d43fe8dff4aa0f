package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// limitBody is called when the headers of a request have arrived, before memory is allocated for its body. Any client may send a body of
// up to 16 KiB. A larger one is charged to the tenant and the token of the request.
func (s *Server) limitBody(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	path := s.api.UnderBase(h.RequestURI())
	limit := bodyLimit(h.Method(), path)
	n := h.ContentLength()
	if n != chunkedLength && n <= conn.SmallBody {
		return fasthttp.RequestConfig{MaxRequestBodySize: limit}
	}
	c := ctxOf(h).Conn()
	why := s.chargeBody(c, h, path, n, limit)
	conn.RefuseBody(c, why)
	if why != nil {
		limit = conn.SmallBody
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: limit}
}

// chargeBody charges a body of n bytes that follows a header, or returns why it is refused.
func (s *Server) chargeBody(c net.Conn, h *fasthttp.RequestHeader, path []byte, n, limit int) error {
	if n > limit {
		return nil // fasthttp refuses it
	}
	beats := bytes.HasPrefix(path, pathHeartbeats)
	if holder, ok := conn.Holder(c); ok && beats { // each item is checked against its own token, so no token is needed here
		return conn.Charge(c, holder, int64(max(n, 0)))
	}
	who := s.bodyFrom(c, h, path, n)
	switch {
	case who != nil:
		conn.Known(c, who.Holder())
		return conn.Charge(c, who.Holder(), int64(max(n, 0)))
	case beats: // its items' tokens may all have expired
		return conn.Charge(c, httpapi.Stranger, int64(max(n, 0)))
	}
	return conn.ErrNoToken
}

// chunkedLength is the length that fasthttp reports when the request has none.
const chunkedLength = -1

var pathHeartbeats = []byte("/v1/heartbeats")

// ctxOf returns the context whose request's header this is: fasthttp's server passes nothing else to HeaderReceived.
func ctxOf(h *fasthttp.RequestHeader) *fasthttp.RequestCtx {
	var ctx *fasthttp.RequestCtx
	at := unsafe.Offsetof(ctx.Request) + unsafe.Offsetof(ctx.Request.Header)
	return (*fasthttp.RequestCtx)(unsafe.Add(unsafe.Pointer(h), -int(at)))
}

// bodyFrom returns the principal to charge for the body: the bearer of the header's token or, for a batch of beats, which needs none, of
// an item's token. It returns nil if there is no valid token.
func (s *Server) bodyFrom(c net.Conn, h *fasthttp.RequestHeader, path []byte, n int) *httpapi.Principal {
	var w httpapi.Wire
	w.Scan(h.RawHeaders())
	now := s.api.RedisTimeAt(time.Now())
	if bearer := w.Bearer(); bearer != nil {
		if who := s.api.Bearer(bearer, now); who != nil {
			return who
		}
	}
	if !bytes.HasPrefix(path, pathHeartbeats) {
		return nil
	}
	if len(h.Peek(fasthttp.HeaderExpect)) > 0 { // the client sends the items only after 100 Continue
		h.Del(fasthttp.HeaderExpect)
		if _, err := io.WriteString(c, conn.Continue); err != nil {
			return nil
		}
	}
	find := tokenFinder{opens: func(bearer []byte) *httpapi.Principal { return s.api.Bearer(bearer, now) }}
	conn.Ahead(c, min(conn.SmallBody, n), find.find) // not beyond the body: if it is chunked, only what arrived with the header
	return find.who
}

// tokenFinder looks for the first valid token among the items of a batch as they arrive.
type tokenFinder struct {
	opens func([]byte) *httpapi.Principal
	who   *httpapi.Principal
	at    int // where to continue
	tried int
}

// maxTried bounds how many invalid tokens are tried.
const maxTried = 16

var nameToken = []byte(`"taskToken"`)

// find reports whether it has found a token or can stop looking.
func (f *tokenFinder) find(seen []byte) bool {
	for f.tried < maxTried {
		i := bytes.Index(seen[f.at:], nameToken)
		if i < 0 {
			f.at = max(f.at, len(seen)-len(nameToken)+1)
			return false
		}
		f.at += i
		value := bytes.TrimLeft(seen[f.at+len(nameToken):], ": \t\r\n")
		if len(value) < 2 || value[0] == '"' && bytes.IndexByte(value[1:], '"') < 0 && len(value) <= token.MaxBytes {
			return false // the rest has not arrived yet
		}
		f.at += len(nameToken)
		f.tried++
		if value[0] == '"' {
			if end := bytes.IndexByte(value[1:], '"'); end > 0 {
				if f.who = f.opens(value[1 : 1+end]); f.who != nil {
					return true
				}
			}
		}
	}
	return true
}

// refusedBody answers a body that is too large, for any client or for one without a valid token.
func (s *Server) refusedBody(ctx *fasthttp.RequestCtx) *httpapi.Refusal {
	switch why := conn.RefusedBody(ctx.Conn()); {
	case errors.Is(why, conn.ErrBudgetExceeded):
		return bodyBudgetExceeded(s.bodies)
	case why != nil:
		return httpapi.ErrUnauthorized
	}
	limit := bodyLimit(ctx.Request.Header.Method(), s.api.UnderBase(ctx.Request.Header.RequestURI()))
	return httpapi.NewRefusal(fasthttp.StatusRequestEntityTooLarge, v1.CodeBodyTooLarge,
		fmt.Sprintf("The body is larger than the %d bytes that this path takes; send less, or in several requests", limit))
}

// bodyLimit returns the largest body accepted before the request is routed. It is called before the body is read.
func bodyLimit(method, target []byte) int {
	path, _, _ := bytes.Cut(target, []byte("?"))
	if bytes.IndexByte(path, '%') >= 0 { // unescaped, as the router will see it
		plain, _, err := httpapi.SplitTarget(target)
		if err != nil {
			return httpapi.LimitCallback // the request is refused in any case
		}
		path = []byte(plain)
	}
	switch {
	case string(method) != fasthttp.MethodPost:
		return httpapi.LimitOther
	case string(path) == "/v1/heartbeats" || string(path) == "/v1/tasks:batch":
		return httpapi.LimitBatch
	case bytes.HasPrefix(path, prefixWorkers) && (bytes.HasSuffix(path, suffixHeartbeat) || // with its inventory a batch
		bytes.HasSuffix(path, suffixExchange)):
		return httpapi.LimitBatch
	case bytes.HasSuffix(path, suffixHeartbeat) || bytes.HasSuffix(path, []byte("/started")) || bytes.HasSuffix(path, []byte("/completed")):
		return httpapi.LimitCallback
	}
	return httpapi.LimitOther
}

var (
	prefixWorkers   = []byte("/v1/workers/")
	suffixHeartbeat = []byte("/heartbeat")
	suffixExchange  = []byte("/exchange")
)
