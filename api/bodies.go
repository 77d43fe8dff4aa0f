package api

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// limitBody is asked when the headers of a request have come, before memory is taken for its body. A body of up to 16 KiB may come
// from anyone. A larger one is charged to the tenant and the token that it comes with.
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
	if holder, ok := conn.Holder(c); ok && beats { // each item is judged by its own token, so none is looked for here
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

// chunkedLength is what fasthttp says where no length is.
const chunkedLength = -1

var pathHeartbeats = []byte("/v1/heartbeats")

// ctxOf returns the context whose request's header this is: fasthttp's server hands HeaderReceived nothing else.
func ctxOf(h *fasthttp.RequestHeader) *fasthttp.RequestCtx {
	var ctx *fasthttp.RequestCtx
	at := unsafe.Offsetof(ctx.Request) + unsafe.Offsetof(ctx.Request.Header)
	return (*fasthttp.RequestCtx)(unsafe.Add(unsafe.Pointer(h), -int(at)))
}

// bodyFrom returns whom the body comes from that follows a header: the bearer of the header's token or, as a batch of beats needs
// none, of an item's. nil: there is no valid token.
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
	if len(h.Peek(fasthttp.HeaderExpect)) > 0 { // the items come when they may
		h.Del(fasthttp.HeaderExpect)
		if _, err := c.Write(continues); err != nil {
			return nil
		}
	}
	find := tokenFinder{opens: func(bearer []byte) *httpapi.Principal { return s.api.Bearer(bearer, now) }}
	conn.Ahead(c, min(conn.SmallBody, n), find.look) // no further than the body: of chunks, only what came with the header
	return find.who
}

var continues = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// tokenFinder looks for the first valid token among the items of a batch, as they come.
type tokenFinder struct {
	opens func([]byte) *httpapi.Principal
	who   *httpapi.Principal
	at    int // where to go on
	tried int
}

// maxTried bounds how many tokens that are not valid are opened.
const maxTried = 16

var nameToken = []byte(`"taskToken"`)

// look reports whether it has found one, or need not look further.
func (f *tokenFinder) look(seen []byte) bool {
	for f.tried < maxTried {
		i := bytes.Index(seen[f.at:], nameToken)
		if i < 0 {
			f.at = max(f.at, len(seen)-len(nameToken)+1)
			return false
		}
		f.at += i
		value := bytes.TrimLeft(seen[f.at+len(nameToken):], ": \t\r\n")
		if len(value) < 2 || value[0] == '"' && bytes.IndexByte(value[1:], '"') < 0 && len(value) <= token.MaxBytes {
			return false // the rest is still to come
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

// refusedBody answers for a body that is larger than it may be: for every client, or for one without a valid token.
func (s *Server) refusedBody(ctx *fasthttp.RequestCtx) *httpapi.Refusal {
	switch why := conn.RefusedBody(ctx.Conn()); {
	case errors.Is(why, conn.ErrNoRoom):
		return noRoomForBody(s.bodies)
	case why != nil:
		return httpapi.ErrUnauthorized
	}
	limit := bodyLimit(ctx.Request.Header.Method(), s.api.UnderBase(ctx.Request.Header.RequestURI()))
	return httpapi.NewRefusal(fasthttp.StatusRequestEntityTooLarge, v1.CodeBodyTooLarge,
		fmt.Sprintf("The body is larger than the %d bytes that this path takes; send less, or in several requests", limit))
}

// bodyLimit returns how large a body may be before the request is routed: it is asked before the body is read.
func bodyLimit(method, target []byte) int {
	path, _, _ := bytes.Cut(target, []byte("?"))
	if bytes.IndexByte(path, '%') >= 0 { // judged as it will be routed
		plain, _, err := httpapi.SplitTarget(target)
		if err != nil {
			return httpapi.LimitCallback // it is refused whatever comes
		}
		path = []byte(plain)
	}
	switch {
	case string(method) != fasthttp.MethodPost:
		return httpapi.LimitOther
	case string(path) == "/v1/heartbeats" || string(path) == "/v1/tasks:batch":
		return httpapi.LimitBatch
	case bytes.HasPrefix(path, prefixWorkers) && bytes.HasSuffix(path, suffixHeartbeat): // with its inventory a batch
		return httpapi.LimitBatch
	case bytes.HasSuffix(path, suffixHeartbeat) || bytes.HasSuffix(path, []byte("/started")) || bytes.HasSuffix(path, []byte("/completed")):
		return httpapi.LimitCallback
	}
	return httpapi.LimitOther
}

var (
	prefixWorkers   = []byte("/v1/workers/")
	suffixHeartbeat = []byte("/heartbeat")
)
