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

// Request is one that a route answers, on its way through its handler.
type Request struct {
	API   *API
	Ctx   *fasthttp.RequestCtx
	Wire  Wire
	Route *Route
	Now   time.Time

	ID      string         // of the path
	Query   url.Values     // checked against the route's
	Caller  *Principal     // whom it comes from; nil where the route asks for no token, or asks for each item's
	Attempt *model.Attempt // with ForTask: the one that it is about
	Bulk    *BulkResult    // what an act on many has done; nil: it was none
}

// Local returns the request's arrival by this process's clock, for what is counted here alone.
func (req *Request) Local() time.Time { return req.API.Local(req.Ctx) }

// Context returns what the Tracker gets. It does not end with the client's connection: fasthttp does not report that, and a
// transition that was begun is better finished. The Tracker bounds its waits for the store, from the request's arrival, and
// tells in events who acts.
func (req *Request) Context() context.Context { return req.during(context.Background()) }

// during is the same for what must not outlive ctx.
func (req *Request) during(ctx context.Context) context.Context {
	if by := req.Caller.actor(); by != "" {
		ctx = model.WithActor(ctx, by)
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

// CheckContentType refuses bodies that claim to be anything but JSON, or to be compressed.
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

// Body returns the request's body when its type is one we read. It is borrowed.
func (req *Request) Body() ([]byte, error) {
	if r := CheckContentType(&req.Ctx.Request.Header); r != nil {
		return nil, r
	}
	return req.Ctx.Request.Body(), nil
}

// Strict reads a control plane's body: one object without unknown fields.
func (req *Request) Strict(v any) error {
	b, err := req.Body()
	if err != nil {
		return err
	}
	return decodeStrict(b, v)
}

// Lenient reads a callback's body: one object; what we do not know is skipped, since workers may be newer.
func (req *Request) Lenient(v any) error {
	b, err := req.Body()
	if err != nil {
		return err
	}
	return decodeLenient(b, v)
}

// WriteJSON writes a whole answer.
func WriteJSON(ctx *fasthttp.RequestCtx, status int, body any) {
	b, err := Marshal(body)
	if err != nil {
		panic(err) // our own types; Handler answers 500 and logs it
	}
	WriteBody(ctx, status, b)
}

// WriteBody writes a whole answer whose JSON is encoded already.
func WriteBody(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentTypeBytes(ContentTypeJSON)
	ctx.Response.SetBody(body)
}

// Marshal is json.Marshal without escaping for HTML, so that users' own JSON comes back as it went in.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Required reads a body that must be there, and the scope.
func (req *Request) Required(body any) (model.Scope, error) {
	if err := req.Strict(body); err != nil {
		return model.Scope{}, err
	}
	return req.Scope("", "")
}

// Optional reads a body that may be missing, and the scope.
func (req *Request) Optional(body any) (model.Scope, error) {
	if err := req.OptionalBody(body); err != nil {
		return model.Scope{}, err
	}
	return req.Scope("", "")
}

// OptionalBody reads a body that may be missing.
func (req *Request) OptionalBody(body any) error {
	if len(req.Ctx.Request.Body()) == 0 {
		return nil
	}
	return req.Strict(body)
}
