package resource

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"strconv"

	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// Page is one page of a list.
type Page[T any] struct {
	Raw     json.RawMessage
	List    json.RawMessage // the entries, as the API has them
	Entries []Entry[T]
	Next    string
	Total   *int
}

// ReadPage reads one page of a list.
func (k *Kind[T]) ReadPage(ctx context.Context, s *session.Session, query url.Values) (*Page[T], error) {
	raw, fields, err := session.Get[map[string]json.RawMessage](ctx, s, k.Path, query)
	if err != nil {
		return nil, err
	}
	return parsePage[T](raw, (*fields)[k.Entries])
}

func parsePage[T any](raw, list json.RawMessage) (*Page[T], error) {
	var about struct {
		Next  string `json:"nextPageToken"`
		Total *int   `json:"totalCount"`
	}
	var all []json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &about), json.Unmarshal(list, &all)); err != nil {
		return nil, err
	}
	p := &Page[T]{Raw: raw, List: list, Next: about.Next, Total: about.Total}
	for _, one := range all {
		e := Entry[T]{one, new(T)}
		if err := json.Unmarshal(one, e.Value); err != nil {
			return nil, err
		}
		p.Entries = append(p.Entries, e)
	}
	return p, nil
}

// LargestPage is how many entries a page of the API has at most.
const LargestPage = 100

// EachPage passes on the entries page by page, up to a limit.
func (k *Kind[T]) EachPage(ctx context.Context, s *session.Session, limit int, queries []url.Values, take func(*Page[T], int) error) error {
	left := limit
	for i, query := range queries {
		query = maps.Clone(query)
		for {
			if size := LargestPage; !k.Unpaged {
				if limit > 0 {
					size = min(size, max(1, left))
				}
				query.Set("pageSize", strconv.Itoa(size))
			}
			p, err := k.ReadPage(ctx, s, query)
			if err != nil {
				return err
			}
			if limit > 0 && len(p.Entries) > left {
				p.Entries, p.Next = p.Entries[:left], "more"
			}
			left -= len(p.Entries)
			if err := take(p, i); err != nil {
				return err
			}
			if p.Next == "" {
				break
			}
			if limit > 0 && left <= 0 {
				return nil
			}
			query.Set("pageToken", p.Next)
		}
	}
	return nil
}
