package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// values encodes a query: a struct whose fields have their names in the tag `url`. Zero values are omitted, lists are joined with commas,
// and maps are repeated as key=value.
func values(query any) url.Values {
	out := url.Values{}
	v := reflect.ValueOf(query)
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Tag.Get("url"), v.Field(i)
		if field.IsZero() {
			continue
		}
		switch value := field.Interface().(type) {
		case string:
			out.Set(name, value)
		case int:
			out.Set(name, strconv.Itoa(value))
		case int64:
			out.Set(name, strconv.FormatInt(value, 10))
		case *bool:
			out.Set(name, strconv.FormatBool(*value))
		case v1.Time:
			out.Set(name, value.UTC().Format(v1.TimeLayout))
		case map[string]string:
			for _, key := range slices.Sorted(keys(value)) {
				out.Add(name, key+"="+url.QueryEscape(value[key]))
			}
		default:
			out.Set(name, commas(field))
		}
	}
	return out
}

func keys(m map[string]string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// commas joins a list of strings, or of a string type.
func commas(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	var all []string
	for i := range v.Len() {
		all = append(all, v.Index(i).String())
	}
	return strings.Join(all, ",")
}

// scoped adds the client's scope to a query.
func (c *Client) scoped(q url.Values) url.Values {
	if q == nil {
		q = url.Values{}
	}
	if c.set.tenant != "" {
		q.Set("tenantId", c.set.tenant)
	}
	if c.set.workspace != "" {
		q.Set("workspaceId", c.set.workspace)
	}
	return q
}

// seg escapes a part of a path. An empty id would name another path, so it is replaced by an invalid id, which the server refuses.
func seg(id string) string {
	if id == "" {
		return "-"
	}
	return url.PathEscape(id)
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	return invoke[T](ctx, c, &call{method: http.MethodGet, path: path, query: c.scoped(query)})
}

func invoke[T any](ctx context.Context, c *Client, k *call) (*T, error) {
	var out T
	k.out = &out
	if err := c.do(ctx, k); err != nil {
		return nil, err
	}
	return &out, nil
}

// none is the body of calls without fields.
type none struct{}

// pages yields all entries of a list, page by page. An error is the last value.
func pages[T any](token string, fetch func(token string) (entries []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token := token; ; {
			entries, next, err := fetch(token)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
			}
			if next == "" || next == token {
				return
			}
			token = next
		}
	}
}

func rawJSON(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	if raw, ok := v.(json.RawMessage); ok && json.Valid(raw) {
		return raw, nil
	}
	return json.Marshal(v)
}
