package httpapi

import (
	"crypto/rand"
	"encoding/base32"
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

const (
	HeaderRequestID = "X-Request-Id"
	maxRequestID    = 128
)

var HeaderRequestIDBytes = []byte(HeaderRequestID)

// requestIDs creates ids for requests without one: req_, ten characters for this process, and a count.
type requestIDs struct {
	prefix string
	count  atomic.Uint64
}

func (r *requestIDs) init() {
	var b [7]byte
	_, _ = rand.Read(b[:]) // never fails
	r.prefix = "req_" + base32.HexEncoding.EncodeToString(b[:])[:10] + "-"
}

// SetRequestID sets the answer's id: the request's own if it is valid, else a new one.
func (a *API) SetRequestID(ctx *fasthttp.RequestCtx, own []byte) {
	var buf [maxRequestID]byte
	ctx.Response.Header.SetCanonical(HeaderRequestIDBytes, a.ids.append(buf[:0], own))
}

// AppendRequestID appends the id of an answer: the request's own if it is valid, else a new one.
func (a *API) AppendRequestID(dst, own []byte) []byte { return a.ids.append(dst, own) }

// append appends the id of an answer.
func (r *requestIDs) append(dst, own []byte) []byte {
	if validRequestID(own) {
		return append(dst, own...)
	}
	return strconv.AppendUint(append(dst, r.prefix...), r.count.Add(1), 36)
}

func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' {
			return false
		}
	}
	return true
}
