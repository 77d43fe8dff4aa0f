package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Request is a call of the control plane as it goes over the wire, for whoever wants the answer's own bytes or calls what the client
// has no method of.
type Request struct {
	// Method is GET where it is empty.
	Method string
	// Path begins with a slash; ids in it are escaped with url.PathEscape.
	Path string
	// Query is sent with the client's scope.
	Query url.Values
	// Body is sent as JSON; nil: none.
	Body any
	// Key is the Idempotency-Key; empty: none.
	Key string
	// Once says that a repeat would do it again: it is repeated only where it cannot have been heard.
	Once bool
}

// Do makes a call and returns the body of its answer as it came. Its errors are those of all calls.
func (c *Client) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	query := url.Values{}
	for name, values := range r.Query {
		query[name] = values
	}
	k := &call{method: r.Method, path: r.Path, query: c.scoped(query), in: r.Body, key: r.Key, once: r.Once}
	if k.method == "" {
		k.method = http.MethodGet
	}
	raw, err := ask[json.RawMessage](ctx, c, k)
	if err != nil {
		return nil, err
	}
	return *raw, nil
}
