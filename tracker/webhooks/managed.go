package webhooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Manage makes these the managed webhooks of the deployment. It leaves unchanged ones alone, but enables one that was disabled because it
// failed. It returns the first error.
func (s *Service) Manage(ctx context.Context, news []NewWebhook) error {
	all, err := s.all(ctx, "")
	if err != nil {
		return err
	}
	had, want := map[string]*Webhook{}, map[string]bool{}
	for _, w := range all {
		had[schema.TaskName(w.Scope, w.ID)] = w
	}
	for _, n := range news {
		name := schema.TaskName(n.Scope, n.ID)
		if want[name] {
			return fmt.Errorf("%s is listed twice in its workspace", n.ID)
		}
		want[name], n.Managed = true, true
		if err := s.manage(ctx, n, had[name]); err != nil {
			return fmt.Errorf("%s: %w", n.ID, err)
		}
	}
	for name, w := range had {
		if w.Managed && !want[name] {
			if err := s.Delete(ctx, w.Scope, w.ID, true); err != nil && model.CodeOf(err) != NotFound {
				return err
			}
		}
	}
	return nil
}

func (s *Service) manage(ctx context.Context, n NewWebhook, had *Webhook) error {
	switch {
	case had == nil:
		_, err := s.Create(ctx, n)
		if model.CodeOf(err) == Exists {
			return nil // another process has just created it
		}
		return err
	case !had.Managed:
		return errors.New("a webhook with this id was made by the API; delete that one, or choose another id")
	}
	if _, err := s.RotateSecret(ctx, n.Scope, n.ID, n.Secret, true); err != nil {
		return err
	}
	if packSettings(&had.Settings, true) == packSettings(&n.Settings, true) && had.Settings.Enabled == n.Settings.Enabled {
		return nil
	}
	_, err := s.Update(ctx, n.Scope, n.ID, n.Settings, true)
	return err
}
