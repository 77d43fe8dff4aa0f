package resource

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/suggest"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// Find reads one object. If the id does not exist, the error suggests the nearest one.
func (k *Kind[T]) Find(ctx context.Context, s *session.Session, id string) (Entry[T], error) {
	raw, found, err := session.Get[T](ctx, s, k.PathOf(id), nil)
	return Entry[T]{Raw: raw, Value: found}, k.Suggest(ctx, s, id, err)
}

// Suggest adds to a not-found error the id that was most likely meant.
func (k *Kind[T]) Suggest(ctx context.Context, s *session.Session, id string, err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		return err
	}
	known, failed := k.IDs(ctx, s)
	if failed != nil {
		return err
	}
	return WithHint(err, suggest.DidYouMean(id, known))
}

// hinted is an error with a suggestion.
type hinted struct {
	error
	hint string
}

func (h hinted) Error() string { return h.error.Error() + h.hint }

func (h hinted) Unwrap() error { return h.error }

// WithHint adds a suggestion to an error.
func WithHint(err error, hint string) error { return hinted{err, hint} }

// HintOf returns the suggestion of an error, if it has one.
func HintOf(err error) string {
	var h hinted
	errors.As(err, &h)
	return h.hint
}

// IDs lists ids of the kind, the newest of many, for suggestions and completion.
func (k *Kind[T]) IDs(ctx context.Context, s *session.Session) ([]string, error) {
	query := url.Values{"order": {"desc"}, "pageSize": {"100"}}
	if k.Unordered || k.Unpaged {
		query = nil
	}
	page, err := k.ReadPage(ctx, s, query)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range page.Entries {
		all = append(all, k.ID(e.Value))
	}
	return all, nil
}
