package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// request is one that a route answers, on its way through its handler.
type request struct {
	api   *API
	ctx   *fasthttp.RequestCtx
	wire  wire
	route *route
	now   time.Time

	id      string         // of the path
	query   url.Values     // checked against the route's
	who     *principal     // whom it comes from; nil where the route asks for no token, or asks for each item's
	attempt *model.Attempt // with forTask: the one that it is about
	many    *many          // what an act on many has done; nil: it was none
}

func (req *request) local() time.Time { return req.api.Local(req.ctx) }

// context returns what the Tracker gets. It does not end with the client's connection: fasthttp does not report that, and a
// transition that was begun is better finished. The Tracker bounds its waits for the store, from the request's arrival, and
// tells in events who acts.
func (req *request) context() context.Context { return req.during(context.Background()) }

// during is the same for what must not outlive ctx.
func (req *request) during(ctx context.Context) context.Context {
	if by := req.who.actor(); by != "" {
		ctx = model.WithActor(ctx, by)
	}
	return arrived(ctx, req.ctx)
}

func arrived(ctx context.Context, r *fasthttp.RequestCtx) context.Context {
	if at := r.Time(); !at.IsZero() {
		return store.ArrivedAt(ctx, at)
	}
	return ctx
}

var (
	contentTypeJSON   = []byte("application/json")
	contentTypeJSONUT = []byte("application/json; charset=utf-8")
)

// checkContentType refuses bodies that claim to be anything but JSON, or to be compressed.
func checkContentType(h *fasthttp.RequestHeader) *refusal {
	if len(h.ContentEncoding()) > 0 {
		return errContentType
	}
	t := h.ContentType()
	if len(t) == 0 || bytes.Equal(t, contentTypeJSON) || bytes.EqualFold(t, contentTypeJSONUT) {
		return nil
	}
	media, params, _ := bytes.Cut(t, []byte(";"))
	charset := bytes.ToLower(bytes.ReplaceAll(bytes.TrimSpace(params), []byte(`"`), nil))
	if bytes.EqualFold(bytes.TrimSpace(media), contentTypeJSON) && (len(charset) == 0 || string(charset) == "charset=utf-8") {
		return nil
	}
	return errContentType
}

var errContentType = &refusal{status: fasthttp.StatusUnsupportedMediaType, body: v1.Error{
	Error: v1.CodeUnsupportedMedia, Message: "The body must be JSON in UTF-8; send Content-Type: application/json and no Content-Encoding",
	Field: "Content-Type",
}}

// body returns the request's body when its type is one we read. It is borrowed.
func (req *request) body() ([]byte, error) {
	if r := checkContentType(&req.ctx.Request.Header); r != nil {
		return nil, r
	}
	return req.ctx.Request.Body(), nil
}

// strict reads a control plane's body: one object without unknown fields.
func (req *request) strict(v any) error {
	b, err := req.body()
	if err != nil {
		return err
	}
	return decodeStrict(b, v)
}

// lenient reads a callback's body: one object; what we do not know is skipped, since workers may be newer.
func (req *request) lenient(v any) error {
	b, err := req.body()
	if err != nil {
		return err
	}
	return decodeLenient(b, v)
}

// writeJSON writes a whole answer.
func writeJSON(ctx *fasthttp.RequestCtx, status int, body any) {
	b, err := marshal(body)
	if err != nil {
		panic(err) // our own types; Handler answers 500 and logs it
	}
	writeBody(ctx, status, b)
}

func writeBody(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(contentTypeJSON)
	ctx.Response.SetBody(body)
}

// marshal is json.Marshal without escaping for HTML, so that users' own JSON comes back as it went in.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// required reads a body that must be there, and the scope.
func (req *request) required(body any) (model.Scope, error) {
	if err := req.strict(body); err != nil {
		return model.Scope{}, err
	}
	return req.scope("", "")
}

// optional reads a body that may be missing, and the scope.
func (req *request) optional(body any) (model.Scope, error) {
	if err := req.optionalBody(body); err != nil {
		return model.Scope{}, err
	}
	return req.scope("", "")
}

// optionalBody reads a body that may be missing.
func (req *request) optionalBody(body any) error {
	if len(req.ctx.Request.Body()) == 0 {
		return nil
	}
	return req.strict(body)
}
