package tasks

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// An accepted creation means what encoding/json reads in it, and has no unknown field.
func FuzzCreateBody(f *testing.F) {
	for _, body := range []string{`{"taskId":"t","deadline":"2025-01-15T11:00:00Z"}`, `{"TaskID":"t"}`, `{"retry":{"x":1}}`,
		`{"labels":{"a":"b"},"payload":[1,{}]}`, `[]`, `{"taskId":""}`, "{\"\\u0074askId\":\"a\"}", `{"taskId":1}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var ctx fasthttp.RequestCtx
		ctx.Request.SetBody(body)
		req := httpapi.Request{API: &httpapi.API{}, Ctx: &ctx, Now: time.Unix(1736935500, 0), Query: url.Values{},
			Caller: &httpapi.Principal{Claims: &token.Claims{Tenant: "acme", Workspace: "prod"}}, Route: &httpapi.Route{Op: "createTask"}}
		var got v1.CreateTaskRequest
		if req.Strict(&got) != nil {
			return
		}
		var want v1.CreateTaskRequest
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %+v; encoding/json: %+v %v", body, got, want, err)
		}
		n, err := newTask(&req, &got, "", httpapi.HeaderIdempotencyKey)
		if err == nil && (n.HeartbeatInterval <= 0 || n.Queue == "" && n.HeartbeatTimeout < model.MinTimeout ||
			n.HeartbeatTimeout > model.MaxTimeout || !model.ValidID(n.Scope.Tenant)) {
			t.Fatalf("%q became %+v", body, n)
		}
	})
}
