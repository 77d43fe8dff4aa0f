// Package page serves files that are part of the program: compressed once, revalidated by ETag, under a policy that lets a browser load
// nothing from other origins. It does not know the content.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/valyala/fasthttp"
)

// Policy returns the Content-Security-Policy of pages whose scripts may call the server and an origin, if it is not "". The last directive
// prevents scripts from turning text into HTML or scripts.
func Policy(origin string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'" + strings.TrimRight(" "+origin, " ") +
		"; frame-ancestors 'none'; require-trusted-types-for 'script'"
}

// Page is one immutable file.
type Page struct {
	contentType string
	etag        string
	plain, gzip []byte // gzip is nil if it would not be shorter
}

// New creates a page from a body, which must not be changed afterwards.
func New(contentType string, body []byte) *Page {
	sum := sha256.Sum256(body)
	p := &Page{contentType: contentType, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, plain: body}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(body)                                  // to memory
	_ = w.Close()
	if b.Len() < len(body) {
		p.gzip = b.Bytes()
	}
	return p
}

// Serve answers a GET or HEAD with the page under a Content-Security-Policy, or with 304 if the browser has it.
func (p *Page) Serve(ctx *fasthttp.RequestCtx, policy string) (status int) {
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	h.Set(fasthttp.HeaderCacheControl, "no-cache") // cached, but revalidated each time: an upgrade takes effect at once
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

// takesGzip evaluates an Accept-Encoding.
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

// knows evaluates an If-None-Match.
func knows(tags, etag string) bool {
	for _, tag := range strings.Split(tags, ",") {
		if tag = strings.TrimSpace(tag); strings.TrimPrefix(tag, "W/") == etag || tag == "*" {
			return true
		}
	}
	return false
}
