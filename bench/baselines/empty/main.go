// Command empty is the minimum cost of any front end: fasthttp with a handler that answers the bytes of Lubdub's answer to a beat and
// evaluates nothing: no token, no body, no Redis. The additional cost of Lubdub's front end is what Lubdub does.
//
// The comparison favours this command slightly: it runs without fasthttp's timeouts, which every server on a network needs.
package main

import (
	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/bench/baselines/internal/frontend"
)

// One answer for all; the request id is as long as that of the millionth answer.
var (
	requestID = []byte("req_1I00S8KC4S-lflc")
	body      = []byte(`{"acknowledged":true,"shouldCancel":false,"serverTime":"2026-01-15T10:05:00.123Z","nextHeartbeatMs":30000}`)
	mimeJSON  = []byte("application/json")
	header    = []byte("X-Request-Id")
)

func answer(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(header, requestID)
	ctx.Response.Header.SetContentTypeBytes(mimeJSON)
	ctx.Response.SetBodyRaw(body)
}

func main() {
	frontend.Serve(func(string) (fasthttp.RequestHandler, error) { return answer, nil })
}
