package beatparse

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Request is a recognised heartbeat. Its slices point into the parsed bytes.
type Request struct {
	Kind      Kind
	ID        []byte // of the task or worker in the path; none in a batch
	Token     []byte // of the Authorization header; nil: there is none
	RequestID []byte // of the client; nil: none
	Body      []byte
	Total     int // bytes of the whole request, the body included

	length int // of the body; -1: unknown
	seen   header
}

// Kind is the kind of a heartbeat.
type Kind uint8

const (
	Task   Kind = iota // POST /v1/tasks/{taskId}/heartbeat
	Worker             // POST /v1/workers/{workerId}/heartbeat
	Batch              // POST /v1/heartbeats
)

// Verdict is the result of parsing.
type Verdict uint8

const (
	Doubt   Verdict = iota // not recognised
	Partial                // a heartbeat so far, but incomplete: Total bytes in all if known, else 0
	Whole                  // a complete heartbeat
)

// MaxHead is the limit for the size of a request's head.
const MaxHead = 8 << 10

// header is a set of relevant headers, none of which may be repeated.
type header uint8

const (
	host header = 1 << iota
	authorization
	contentType
	contentLength
	connection
	requestID
)

// Parse parses the first request in b, whose body may have at most maxBody bytes.
func Parse(b []byte, maxBody int, r *Request) Verdict {
	*r = Request{length: -1}
	end, verdict := line(b, 0)
	if verdict != Whole {
		if !begins(b) {
			return Doubt
		}
		return verdict
	}
	if !r.target(b[:end]) {
		return Doubt
	}
	for {
		at := end + 2
		if end, verdict = line(b, at); verdict != Whole {
			return verdict
		}
		if end == at {
			return r.body(b, at+2, maxBody)
		}
		if !r.header(b[at:end]) {
			return Doubt
		}
	}
}

// line finds the end of the line that begins at from: printable ASCII, then CR and LF.
func line(b []byte, from int) (end int, v Verdict) {
	end = printable(b, from)
	switch {
	case end >= MaxHead-2:
		return 0, Doubt
	case end == len(b) || end == len(b)-1 && b[end] == '\r':
		return 0, Partial
	case b[end] != '\r' || b[end+1] != '\n':
		return 0, Doubt
	}
	return end, Whole
}

// printable returns the index of the first byte from i on that is not printable ASCII, or len(b). It examines eight bytes at a time:
// a byte is not printable if subtracting 0x20 borrows, if adding 1 reaches 0x80, or if it is above.
func printable(b []byte, i int) int {
	const low, one, high = 0x2020202020202020, 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if odd := ((x - low) | (x + one) | x) & high; odd != 0 {
			return i + bits.TrailingZeros64(odd)/8 // a borrow or carry only affects bytes above the first
		}
	}
	for ; i < len(b) && ' ' <= b[i] && b[i] <= '~'; i++ {
	}
	return i
}

const (
	method        = "POST "
	prefixTask    = method + "/v1/tasks/"
	prefixWorker  = method + "/v1/workers/"
	suffix        = "/heartbeat" + protocol
	protocol      = " HTTP/1.1"
	requestsBatch = method + "/v1/heartbeats" + protocol
)

// begins reports whether an incomplete first line may still be recognised.
func begins(b []byte) bool {
	n := min(len(b), len(method)+len("/v1/"))
	return string(b[:n]) == prefixTask[:n]
}

// target parses the first line.
func (r *Request) target(line []byte) bool {
	switch {
	case string(line) == requestsBatch:
		r.Kind = Batch
		return true
	case len(line) > len(prefixTask)+len(suffix) && string(line[:len(prefixTask)]) == prefixTask:
		r.Kind, line = Task, line[len(prefixTask):]
	case len(line) > len(prefixWorker)+len(suffix) && string(line[:len(prefixWorker)]) == prefixWorker:
		r.Kind, line = Worker, line[len(prefixWorker):]
	default:
		return false
	}
	id := len(line) - len(suffix)
	if string(line[id:]) != suffix {
		return false
	}
	r.ID = line[:id]
	for _, c := range r.ID {
		if !plain[c] {
			return false
		}
	}
	return true
}

// plain are the bytes of ids, none of which has a meaning in a path.
var plain = func() (set [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-" {
		set[c] = true
	}
	return set
}()

// header parses one line of the head after the first. Header names are recognised in their usual form or in lower case.
func (r *Request) header(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return false
	}
	value := line[colon+1:]
	if len(value) < 2 || value[0] != ' ' || value[1] == ' ' || value[len(value)-1] == ' ' {
		return false
	}
	value = value[1:]
	switch string(line[:colon]) {
	case "Host", "host":
		return r.once(host) && isHost(value)
	case "Authorization", "authorization":
		r.Token = bearer(value)
		return r.once(authorization) && r.Token != nil
	case "Content-Type", "content-type":
		return r.once(contentType) && isJSON(value)
	case "Content-Length", "content-length":
		return r.once(contentLength) && r.decimal(value)
	case "Connection", "connection":
		return r.once(connection) && (string(value) == "keep-alive" || string(value) == "Keep-Alive")
	case "X-Request-ID", "X-Request-Id", "x-request-id":
		r.RequestID = value
		return r.once(requestID)
	case "User-Agent", "user-agent", "Accept", "accept", "Accept-Encoding", "accept-encoding", "Accept-Language", "accept-language",
		"Cache-Control", "cache-control", "Pragma", "pragma",
		"Traceparent", "traceparent", "Tracestate", "tracestate", "Baggage", "baggage",
		"Sec-Fetch-Mode", "sec-fetch-mode", "Sec-Fetch-Site", "sec-fetch-site", "Sec-Fetch-Dest", "sec-fetch-dest",
		"Forwarded", "forwarded", "Via", "via", "X-Real-IP", "X-Real-Ip", "x-real-ip",
		"X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Proto", "x-forwarded-proto",
		"X-Forwarded-Host", "x-forwarded-host", "X-Forwarded-Port", "x-forwarded-port":
		return true // no answer to a heartbeat depends on them
	}
	return false
}

// once reports whether a header appears for the first time.
func (r *Request) once(h header) bool {
	again := r.seen&h != 0
	r.seen |= h
	return !again
}

// isHost accepts names and IPv4 addresses, with an optional port.
func isHost(value []byte) bool {
	name, port, _ := bytes.Cut(value, []byte(":"))
	for _, c := range name {
		if !plain[c] {
			return false
		}
	}
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(name) > 0
}

// bearer returns the token of an Authorization header, or nil if it has another form.
func bearer(value []byte) []byte {
	const scheme = "Bearer "
	if len(value) <= len(scheme) || string(value[:len(scheme)]) != scheme || value[len(scheme)] == ' ' {
		return nil
	}
	return value[len(scheme):]
}

func isJSON(value []byte) bool {
	switch string(value) {
	case "application/json", "application/json; charset=utf-8", "application/json;charset=utf-8",
		"application/json; charset=UTF-8", "application/json;charset=UTF-8":
		return true
	}
	return false
}

// decimal parses the length of the body.
func (r *Request) decimal(value []byte) bool {
	if len(value) > 8 {
		return false
	}
	r.length = 0
	for _, c := range value {
		if c < '0' || c > '9' {
			return false
		}
		r.length = 10*r.length + int(c-'0')
	}
	return true
}

// body reads the body, which begins at from.
func (r *Request) body(b []byte, from, maxBody int) Verdict {
	if r.seen&host == 0 || r.length < 0 || r.length > maxBody {
		return Doubt
	}
	r.Total = from + r.length
	if len(b) < r.Total {
		return Partial
	}
	r.Body = b[from:r.Total:r.Total]
	return Whole
}
