// Package page serves files that are part of the program: compressed once, revalidated by ETag, under a policy that lets a browser load
// nothing from elsewhere. It knows nothing of ours.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/valyala/fasthttp"
)

// Policy is the Content-Security-Policy of every page. The last directive forbids scripts to make HTML, or scripts, out of text.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'"

// Page is one file. It is immutable.
type Page struct {
	contentType string
	etag        string
	plain, gzip []byte // gzip is nil where it would not be shorter
}

// New makes a page of a body, which must not be changed afterwards.
func New(contentType string, body []byte) *Page {
	sum := sha256.Sum256(body)
	p := &Page{contentType: contentType, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, plain: body}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one
	_, _ = w.Write(body)                                  // to memory
	_ = w.Close()
	if b.Len() < len(body) {
		p.gzip = b.Bytes()
	}
	return p
}

// Serve answers a GET or HEAD with the page, or with 304 to a browser that has it.
func (p *Page) Serve(ctx *fasthttp.RequestCtx) (status int) {
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	h.Set(fasthttp.HeaderCacheControl, "no-cache") // kept, and asked about each time: an upgrade shows at once
	zipped := p.gzip != nil && takesGzip(string(ctx.Request.Header.Peek(fasthttp.HeaderAcceptEncoding)))
	etag, body := p.etag, p.plain
	if zipped {
		etag, body = p.etag[:len(p.etag)-1]+`-gzip"`, p.gzip
	}
	h.Set(fasthttp.HeaderETag, etag)
	if knows(string(ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), etag) {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return fasthttp.StatusNotModified
	}
	if zipped {
		h.Set(fasthttp.HeaderContentEncoding, "gzip")
	}
	h.SetContentType(p.contentType)
	ctx.Response.SetBodyRaw(body)
	return fasthttp.StatusOK
}

// takesGzip reads an Accept-Encoding.
func takesGzip(accepted string) bool {
	for _, part := range strings.Split(accepted, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q := strings.TrimSpace(weight)
			return q != "q=0" && !strings.HasPrefix(q, "q=0.000")
		}
	}
	return false
}

// knows reads an If-None-Match.
func knows(tags, etag string) bool {
	for _, tag := range strings.Split(tags, ",") {
		if tag = strings.TrimSpace(tag); strings.TrimPrefix(tag, "W/") == etag || tag == "*" {
			return true
		}
	}
	return false
}
