package httpapi

import (
	"bytes"
	"io"

	"github.com/valyala/fasthttp"
)

// delivery is the body of a reply that includes a cancel. The grace period of a cancel begins when the worker can know of it, so the
// domain is notified once the reply has been written to the connection. fasthttp has no hook for that, but lets a body write itself:
// this one flushes, and reports the delivery only if that succeeded.
type delivery struct {
	body []byte
	sent func()
}

// Read implements io.Reader, which fasthttp requires; fasthttp uses WriteTo.
func (d *delivery) Read(p []byte) (int, error) {
	if len(d.body) == 0 {
		return 0, io.EOF
	}
	n := copy(p, d.body)
	d.body = d.body[n:]
	return n, nil
}

func (d *delivery) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(d.body)
	if f, ok := w.(interface{ Flush() error }); ok && err == nil {
		err = f.Flush()
	}
	if err == nil {
		d.sent()
	}
	return int64(n), err
}

// WriteNotified answers 200 with a copy of body, and calls sent when it has been written to the connection.
func WriteNotified(ctx *fasthttp.RequestCtx, body []byte, sent func()) {
	ctx.SetStatusCode(fasthttp.StatusOK)
	ctx.Response.Header.SetContentTypeBytes(ContentTypeJSON)
	ctx.SetBodyStream(&delivery{body: bytes.Clone(body), sent: sent}, len(body))
}
