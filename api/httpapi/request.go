package httpapi

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

// Request is a request to a route.
type Request struct {
	API   *API
	Ctx   *fasthttp.RequestCtx
	Wire  Wire
	Route *Route
	Now   time.Time

	ID      string         // of the path
	Query   url.Values     // checked against the route's parameters
	Caller  *Principal     // the client; nil if the route needs no token, or one for each item
	Attempt *model.Attempt // with ForTask: the attempt of the token
	Bulk    *BulkResult    // the result of an operation on many objects; nil: none

	inControl bool // it has a place among the requests of the control plane
}

// Local returns the request's arrival by this process's clock, for limits that this process alone counts.
func (req *Request) Local() time.Time { return req.API.Local(req.Ctx) }

// Context returns the context for calls to the tracker. It does not end with the client's connection: fasthttp does not report that, and
// a transition that has begun is better finished. The tracker limits its waits for the store from the request's arrival, and names
// the actor in events.
func (req *Request) Context() context.Context { return req.during(context.Background()) }

// during returns the same context, but it ends with ctx.
func (req *Request) during(ctx context.Context) context.Context {
	if by := req.Caller.actor(); by != "" {
		ctx = store.ForTenant(model.WithActor(ctx, by), req.Caller.tenant())
	}
	return arrived(ctx, req.Ctx)
}

func arrived(ctx context.Context, r *fasthttp.RequestCtx) context.Context {
	if at := r.Time(); !at.IsZero() {
		return store.ArrivedAt(ctx, at)
	}
	return ctx
}

var (
	ContentTypeJSON   = []byte("application/json")
	contentTypeJSONUT = []byte("application/json; charset=utf-8")
)

// CheckContentType refuses bodies that are declared as anything but JSON, or as compressed.
func CheckContentType(h *fasthttp.RequestHeader) *Refusal {
	if len(h.ContentEncoding()) > 0 {
		return errContentType
	}
	t := h.ContentType()
	if len(t) == 0 || bytes.Equal(t, ContentTypeJSON) || bytes.EqualFold(t, contentTypeJSONUT) {
		return nil
	}
	media, params, _ := bytes.Cut(t, []byte(";"))
	charset := bytes.ToLower(bytes.ReplaceAll(bytes.TrimSpace(params), []byte(`"`), nil))
	if bytes.EqualFold(bytes.TrimSpace(media), ContentTypeJSON) && (len(charset) == 0 || string(charset) == "charset=utf-8") {
		return nil
	}
	return errContentType
}

var errContentType = &Refusal{Status: fasthttp.StatusUnsupportedMediaType, Body: v1.Error{
	Error: v1.CodeUnsupportedMedia, Message: "The body must be JSON in UTF-8; send Content-Type: application/json and no Content-Encoding",
	Field: "Content-Type",
}}

// Body returns the request's body if its type is supported. The slice is valid until the handler returns.
func (req *Request) Body() ([]byte, error) {
	if r := CheckContentType(&req.Ctx.Request.Header); r != nil {
		return nil, r
	}
	return req.Ctx.Request.Body(), nil
}

// Strict decodes a control plane's body: one object without unknown fields.
func (req *Request) Strict(v any) error {
	b, err := req.Body()
	if err != nil {
		return err
	}
	return decodeStrict(b, v)
}

// Lenient decodes a callback's body: one object; unknown fields are skipped, since workers may be newer.
func (req *Request) Lenient(v any) error {
	b, err := req.Body()
	if err != nil {
		return err
	}
	return decodeLenient(b, v)
}

// WriteJSON writes a complete answer.
func WriteJSON(ctx *fasthttp.RequestCtx, status int, body any) {
	b, err := Marshal(body)
	if err != nil {
		panic(err) // our own types; Handler answers 500 and logs it
	}
	WriteBody(ctx, status, b)
}

// WriteBody writes a complete answer whose JSON is already encoded.
func WriteBody(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(ContentTypeJSON)
	ctx.Response.SetBody(body)
}

// Marshal is json.Marshal without escaping for HTML, so that users' own JSON is returned unchanged.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Required decodes a mandatory body, and returns the scope.
func (req *Request) Required(body any) (model.Scope, error) {
	if err := req.Strict(body); err != nil {
		return model.Scope{}, err
	}
	return req.Scope("", "")
}

// Optional decodes an optional body, and returns the scope.
func (req *Request) Optional(body any) (model.Scope, error) {
	if err := req.OptionalBody(body); err != nil {
		return model.Scope{}, err
	}
	return req.Scope("", "")
}

// OptionalBody decodes an optional body.
func (req *Request) OptionalBody(body any) error {
	if len(req.Ctx.Request.Body()) == 0 {
		return nil
	}
	return req.Strict(body)
}
