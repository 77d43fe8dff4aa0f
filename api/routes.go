package api

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Body limits, in bytes.
const (
	limitCallback = 256 << 10
	limitBatch    = 4 << 20
	limitOther    = 1 << 20
	limitHeaders  = 8 << 10
)

// maxBatch is how many entries a batch may have.
const maxBatch = 1000

// access says which token opens a route.
type access uint8

const (
	forAll     access = iota // no token
	forTask                  // the task token of that very task
	forBeat                  // the task token of that very task, which the handler looks at: it is on the path of every heartbeat
	forItems                 // each item of the body brings its own
	forControl               // a control token; route.needs says which role
	forWorker                // the token of that very worker or, where route.needs is set, such a control token
)

// route is one operation. The table of them is also what the OpenAPI document is held against.
type route struct {
	method  string
	pattern string // a segment {…} takes an id
	op      string // its name in the OpenAPI document and the log
	access  access
	needs   permissions // one of these bits; with forControl
	query   []string    // parameters that it takes besides the scope's
	repeats []string    // those of them that may be given more than once
	handle  func(*request) (status int, body any, err error)

	beats      string // the kind of heartbeats that it takes; "": none
	waits      bool   // it may wait for something to happen, so the handler bounds how many do
	logsItself bool   // the domain logs the act

	index    int // in the table
	segments []string
}

// Routes returns the table of routes.
func (a *API) Routes() []*route { return a.routes }

// Find returns the route of a path and the id in it. HEAD is taken where GET is.
func (a *API) Find(method, path string) (*route, string, error) {
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	segments := strings.Split(path[1:], "/")
	var allow []string
	for _, r := range a.routes {
		id, ok := r.match(segments)
		if !ok {
			continue
		}
		if r.method == method {
			return r, id, nil
		}
		allow = append(allow, r.method)
		if r.method == fasthttp.MethodGet {
			allow = append(allow, fasthttp.MethodHead)
		}
	}
	if allow != nil {
		return nil, "", methodNotAllowed(strings.Join(allow, ", "))
	}
	return nil, "", refuse(fasthttp.StatusNotFound, v1.CodeNotFound, "There is nothing at this path; /openapi.json lists what there is")
}

func (r *route) match(segments []string) (id string, ok bool) {
	if len(segments) != len(r.segments) {
		return "", false
	}
	for i, seg := range r.segments {
		if strings.HasPrefix(seg, "{") {
			if segments[i] == "" {
				return "", false
			}
			id = segments[i]
		} else if seg != segments[i] {
			return "", false
		}
	}
	return id, true
}

// resembles reports whether a path begins and ends as the pattern does, whatever id it has.
func (r *route) resembles(path []byte) bool {
	before, rest, hasID := strings.Cut(r.pattern, "{")
	_, after, _ := strings.Cut(rest, "}")
	if !hasID {
		return string(path) == r.pattern
	}
	return bytes.HasPrefix(path, []byte(before)) && bytes.HasSuffix(path, []byte(after))
}

// idField is the name of the path's id.
func (r *route) idField() string {
	for _, seg := range r.segments {
		if strings.HasPrefix(seg, "{") {
			return seg[1 : len(seg)-1]
		}
	}
	return ""
}

func (r *route) String() string { return fmt.Sprintf("%s %s", r.method, r.pattern) }
