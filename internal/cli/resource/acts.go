package resource

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// OnEach acts on each of the named ids. It continues after a refusal, and returns the first error.
func OnEach[T any](
	s *session.Session, k *Kind[T], ids []string, act func(ctx context.Context, id string) (json.RawMessage, *T, error),
) error {
	rows, failed := k.Rows(s), error(nil)
	for _, id := range ids {
		raw, done, err := act(s.Env.Context, id)
		if err != nil {
			err = k.Suggest(s.Env.Context, s, id, err)
			if len(ids) == 1 || s.Env.Context.Err() != nil {
				return err
			}
			s.Note("lubdub: %s: %v", id, err)
			if failed == nil {
				failed = exit.Reported(err)
			}
			continue
		}
		if err := k.ShowRows(s, rows, Entry[T]{Raw: raw, Value: done}); err != nil {
			return err
		}
	}
	return failed
}

// Send sends a file and shows the result.
func (k *Kind[T]) Send(env *session.Env, c *session.Flags, method, path, file string) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	var body json.RawMessage
	if err := session.ReadJSON(env, file, &body); err != nil {
		return err
	}
	raw, made, err := session.Call[T](env.Context, s, client.Request{Method: method, Path: path, Body: body, Once: method == http.MethodPost})
	if err != nil {
		return err
	}
	return k.Show(s, raw, made)
}

// Remove deletes those that were named.
func (k *Kind[T]) Remove(env *session.Env, c *session.Flags, ids []string) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	for _, id := range ids {
		raw, err := s.Do(env.Context, client.Request{Method: http.MethodDelete, Path: k.PathOf(id)})
		if err != nil {
			return k.Suggest(env.Context, s, id, err)
		}
		if err := s.ShowResult(raw, "%s %s is deleted.", k.Noun, id); err != nil {
			return err
		}
	}
	return nil
}

// Get shows those of a kind that were named.
func (k *Kind[T]) Get(env *session.Env, c *session.Flags, ids []string) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	return OnEach(s, k, ids, func(ctx context.Context, id string) (json.RawMessage, *T, error) {
		return session.Get[T](ctx, s, k.PathOf(id), nil)
	})
}
