package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// Do makes a call; its errors say what to do.
func (s *Session) Do(ctx context.Context, r client.Request) (json.RawMessage, error) {
	raw, err := s.Client.Do(ctx, r)
	return raw, s.Explain(err)
}

// Get reads from the API: the raw JSON, and its decoded form.
func Get[T any](ctx context.Context, s *Session, path string, query url.Values) (json.RawMessage, *T, error) {
	return Call[T](ctx, s, client.Request{Path: path, Query: query})
}

// Post calls an operation that acts.
func Post[T any](ctx context.Context, s *Session, path string, body any) (json.RawMessage, *T, error) {
	if body == nil {
		body = struct{}{}
	}
	return Call[T](ctx, s, client.Request{Method: http.MethodPost, Path: path, Body: body})
}

// Call makes a call, and returns the raw JSON of the answer and its decoded form.
func Call[T any](ctx context.Context, s *Session, r client.Request) (json.RawMessage, *T, error) {
	raw, err := s.Do(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, nil, fmt.Errorf("%s answers with something else than Lubdub would: %w", s.Where(), err)
	}
	return raw, out, nil
}

// Explain adds advice to an error of the client.
func (s *Session) Explain(err error) error {
	var refused *client.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case !errors.As(err, &refused):
		if client.MayRetry(err) {
			return exit.Unanswered(fmt.Errorf("%s does not answer: %w", s.Where(), err))
		}
		return err
	case refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w\n%s", exit.Refusal(refused), s.Credential.RenewalHint())
	case refused.Status == http.StatusForbidden:
		return fmt.Errorf("%w%s", exit.Refusal(refused), s.Credential.role())
	}
	return exit.Refusal(refused)
}
