package main

import (
	"encoding/json"
	"testing"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The answer is one that a client of Lubdub takes for a beat's.
func TestAnswerIsABeats(t *testing.T) {
	var ctx fasthttp.RequestCtx
	answer(&ctx)
	var r v1.HeartbeatResponse
	if err := json.Unmarshal(ctx.Response.Body(), &r); err != nil || !r.Acknowledged || r.ServerTime.IsZero() || r.NextHeartbeatMs != 30000 {
		t.Fatal(err, r)
	}
	want, err := json.Marshal(r)
	if err != nil || string(want) != string(ctx.Response.Body()) {
		t.Errorf("%s\n%s", ctx.Response.Body(), want)
	}
}
