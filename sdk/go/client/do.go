package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Request is a raw control call, for programs that need the bytes of the answer or a call that the client has no method for.
type Request struct {
	// Method is GET if empty.
	Method string
	// Path begins with a slash; ids in it are escaped with url.PathEscape.
	Path string
	// Query is sent with the client's scope.
	Query url.Values
	// Body is sent as JSON; nil: none.
	Body any
	// Key is the Idempotency-Key; empty: none.
	Key string
	// Once: a repeat would apply it twice, so it is retried only if the server cannot have received it.
	Once bool
}

// Do makes a call and returns the unparsed body of its answer. It fails as all calls do.
func (c *Client) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	query := url.Values{}
	for name, values := range r.Query {
		query[name] = values
	}
	k := &call{method: r.Method, path: r.Path, query: c.scoped(query), in: r.Body, key: r.Key, once: r.Once}
	if k.method == "" {
		k.method = http.MethodGet
	}
	raw, err := invoke[json.RawMessage](ctx, c, k)
	if err != nil {
		return nil, err
	}
	return *raw, nil
}
