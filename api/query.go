package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// parseQuery reads the query and refuses parameters that the route does not take.
func (req *request) parseQuery(raw string) error {
	if raw == "" {
		return nil
	}
	q, err := url.ParseQuery(raw)
	if err != nil {
		return invalidField("query", "The query string is not well formed; percent-encode its values")
	}
	names := make([]string, 0, len(q))
	for name := range q {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		known := slices.Contains(req.route.query, name) || (req.route.access == forControl || req.route.access == forWorker) && (name == "tenantId" || name == "workspaceId")
		switch {
		case name == "":
			return invalidField("query", "The query has a value without a name; write name=value")
		case !known:
			return invalidField(clip(name), fmt.Sprintf("%q is not a parameter of this path; check its spelling, or leave it out", clip(name)))
		case len(q[name]) > 1 && name != "label":
			return invalidField(name, name+" is given twice; give it once")
		}
	}
	req.query = q
	return nil
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64]
	}
	return s
}

// queryID returns an id parameter, empty when absent.
func (req *request) queryID(name string) (string, error) {
	if !req.query.Has(name) {
		return "", nil
	}
	id := req.query.Get(name)
	return id, invalidIDUnless(name, id)
}

// oneOf returns a parameter that takes one of some words, empty when absent.
func oneOf[T ~string](req *request, name string, words ...T) (T, error) {
	if !req.query.Has(name) {
		return "", nil
	}
	v := T(req.query.Get(name))
	if slices.Contains(words, v) {
		return v, nil
	}
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return "", invalidField(name, fmt.Sprintf("%s is %q; use one of %s", name, clip(string(v)), strings.Join(list, ", ")))
}

const (
	defaultPageSize = 100
	maxPageSize     = 100
)

// pageSize is clamped to 1 to 100; what is not an integer is refused.
func (req *request) pageSize() (int, error) {
	if !req.query.Has("pageSize") {
		return defaultPageSize, nil
	}
	v := req.query.Get("pageSize")
	n, err := strconv.Atoi(v)
	if err != nil {
		digits := strings.TrimPrefix(v, "-")
		if digits == "" || strings.Trim(digits, "0123456789") != "" {
			return 0, invalidField("pageSize", "pageSize is not an integer; use 1 to 100")
		}
		n = maxPageSize // an integer too large for us
		if digits != v {
			n = 1
		}
	}
	return min(max(n, 1), maxPageSize), nil
}
