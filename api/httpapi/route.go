package httpapi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Body limits, in bytes.
const (
	LimitCallback = 256 << 10
	LimitBatch    = 4 << 20
	LimitOther    = 1 << 20
	LimitHeaders  = 8 << 10
)

// MaxBatch is how many entries a batch may have.
const MaxBatch = 1000

// Access is the kind of token that a route requires.
type Access uint8

const (
	ForAll     Access = iota // no token
	ForTask                  // the task token of the path's task
	ForBeat                  // the same, but the handler checks it: it is on the path of every heartbeat
	ForItems                 // each item of the body has its own
	ForControl               // a control token with one of Route.Needs
	ForWorker                // the token of the path's worker or, if Route.Needs is set, such a control token
)

// Route is one operation. The OpenAPI document is checked against the table of routes.
type Route struct {
	Method  string
	Pattern string // a segment {…} matches an id
	Op      string // its name in the OpenAPI document and the log
	Access  Access
	Needs   Permissions // one of these bits; with ForControl
	Query   []Param     // in addition to the scope's, unless it says what these mean here
	Handle  func(*Request) (status int, body any, err error)

	Beats      string // the kind of heartbeats that it accepts; "": none
	Waits      bool   // it may wait for something to happen; the handler limits how many do
	LogsItself bool   // the domain logs the operation

	// For the OpenAPI document.
	Summary        string
	Description    string
	Tag            string
	Headers        []Param
	Body           any // a type of package v1, or an empty struct where it has no fields; nil: no body
	OptionalBody   bool
	NotIdempotent  bool              // a repeated call takes effect again, so clients do not retry it after a lost response
	IdempotentBy   string            // the body's field that makes a repeat safe
	Examples       map[string]string // of the body, as JSON, by name
	Answers        map[int]any       // by status: a type of package v1, or a list of them
	AnswerExamples map[int]map[string]string
	Errors         []int // statuses in addition to those that every such route may answer

	index    int // in the table
	segments []string
}

// params returns the parameters of the query.
func (r *Route) params() []Param {
	if r.Access == ForControl || r.Access == ForWorker {
		return append(slices.Clip(r.Query), ParamTenantID, ParamWorkspaceID)
	}
	return r.Query
}

// Routes returns the table of routes.
func (a *API) Routes() []*Route { return a.routes }

// Find returns the route of a path and the id in it. HEAD is accepted for GET.
func (a *API) Find(method, path string) (*Route, string, error) {
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
		if r.Method == method {
			return r, id, nil
		}
		allow = append(allow, r.Method)
		if r.Method == fasthttp.MethodGet {
			allow = append(allow, fasthttp.MethodHead)
		}
	}
	if allow != nil {
		return nil, "", MethodNotAllowed(strings.Join(allow, ", "))
	}
	return nil, "", NewRefusal(fasthttp.StatusNotFound, v1.CodeNotFound, "No resource at this path; /openapi.json lists the paths")
}

func (r *Route) match(segments []string) (id string, ok bool) {
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

// resembles reports whether a path begins and ends as the pattern does, with any id.
func (r *Route) resembles(path []byte) bool {
	before, rest, hasID := strings.Cut(r.Pattern, "{")
	_, after, _ := strings.Cut(rest, "}")
	if !hasID {
		return string(path) == r.Pattern
	}
	return bytes.HasPrefix(path, []byte(before)) && bytes.HasSuffix(path, []byte(after))
}

// IDField returns the name of the path's id.
func (r *Route) IDField() string {
	for _, seg := range r.segments {
		if strings.HasPrefix(seg, "{") {
			return seg[1 : len(seg)-1]
		}
	}
	return ""
}

func (r *Route) String() string { return fmt.Sprintf("%s %s", r.Method, r.Pattern) }
