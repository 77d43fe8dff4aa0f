package httpapi

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Wire is the result of one pass over a request's raw headers. fasthttp accepts several things that a front end must refuse (two
// framings of one body, folded headers) and keeps no trace of them after parsing, so the raw headers are examined. The slices point
// into the request.
type Wire struct {
	authorization []byte
	RequestID     []byte
	authorized    int // how many Authorization headers
	lengths       int // Content-Length headers
	encodings     int // Transfer-Encoding headers
	chunked       bool
	folded        bool
}

// Scan examines the raw headers of a request.
func (w *Wire) Scan(raw []byte) {
	for len(raw) > 0 {
		end := bytes.IndexByte(raw, '\n')
		if end < 0 {
			end = len(raw) - 1
		}
		line := raw[:end]
		raw = raw[end+1:]
		if len(line) > 0 && line[len(line)-1] == '\r' {
			line = line[:len(line)-1]
		}
		if len(line) == 0 {
			return
		}
		switch line[0] {
		case ' ', '\t':
			w.folded = true
		case 'a', 'A':
			if v, ok := header(line, "authorization"); ok {
				w.authorization = v
				w.authorized++
			}
		case 'x', 'X':
			if v, ok := header(line, "x-request-id"); ok {
				w.RequestID = v
			}
		case 'c', 'C':
			if _, ok := header(line, "content-length"); ok {
				w.lengths++
			}
		case 't', 'T':
			if v, ok := header(line, "transfer-encoding"); ok {
				w.encodings++
				w.chunked = bytes.EqualFold(v, chunked)
			}
		}
	}
}

var chunked = []byte("chunked")

// header returns the value if the line is a header of the (lower-case) name.
func header(line []byte, name string) ([]byte, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' {
		return nil, false
	}
	for i := 0; i < len(name); i++ {
		c := line[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != name[i] {
			return nil, false
		}
	}
	v := line[len(name)+1:]
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v, true
}

// ambiguous reports whether another hop might parse the request differently: then both the request and the connection end here.
func (w *Wire) ambiguous() bool {
	return w.folded || w.encodings > 0 && (w.encodings > 1 || w.lengths > 0 || !w.chunked)
}

// Check refuses what other hops may parse differently.
func (w *Wire) Check(ctx *fasthttp.RequestCtx) *Refusal {
	switch {
	case w.ambiguous():
		return errAmbiguous
	case len(ctx.Request.Header.Host()) == 0 && ctx.Request.Header.IsHTTP11():
		return errHost
	}
	return nil
}

var errAmbiguous = &Refusal{Status: fasthttp.StatusBadRequest, close: true, Body: v1.Error{
	Error:   v1.CodeInvalidRequest,
	Message: "The request is framed ambiguously; send either Content-Length or Transfer-Encoding: chunked, and no folded headers",
}}

var errTarget = &Refusal{Status: fasthttp.StatusBadRequest, close: true, Body: v1.Error{
	Error:   v1.CodeInvalidRequest,
	Message: "The request target must be a plain path such as /v1/tasks, without a host, .. or encoded slashes",
}}

var errHost = &Refusal{Status: fasthttp.StatusBadRequest, close: true, Body: v1.Error{
	Error: v1.CodeInvalidRequest, Message: "The Host header is missing", Field: "Host",
}}

// SplitTarget returns path and query of a request target. The path is percent-decoded, since some clients encode more than they must,
// but the encoding must not hide a slash, a dot segment or a control byte.
func SplitTarget(target []byte) (path, query string, err error) {
	if len(target) == 0 || target[0] != '/' {
		return "", "", errTarget
	}
	path, query, _ = strings.Cut(string(target), "?")
	if strings.ContainsAny(path, `#\`) || strings.Contains(query, "#") {
		return "", "", errTarget
	}
	segments := strings.Split(path[1:], "/")
	for i, seg := range segments {
		if strings.IndexByte(seg, '%') >= 0 {
			plain, err := url.PathUnescape(seg)
			if err != nil || strings.ContainsAny(plain, `/\%`) || strings.ContainsFunc(plain, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
				return "", "", errTarget
			}
			segments[i], seg = plain, plain
		}
		if seg == "." || seg == ".." {
			return "", "", errTarget
		}
	}
	return "/" + strings.Join(segments, "/"), query, nil
}
