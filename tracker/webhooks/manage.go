package webhooks

import (
	"context"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/store"
)

var errNotFound = &model.Error{Code: NotFound,
	Message: "there is no such webhook in this tenant and workspace; check the id, tenantId and workspaceId"}

// Create creates a webhook, and returns it with its secret, which is never shown again. It fails for invalid settings, an existing ID, or
// beyond the limits.
func (s *Service) Create(ctx context.Context, n NewWebhook) (*Webhook, error) {
	ctx = s.store.Within(ctx, 0)
	if n.ID == "" {
		n.ID = "whk_" + ulid.Make().String()
	}
	if n.Secret == "" {
		n.Secret = NewSecret()
	}
	if err := checkSecret("secret", n.Secret); err != nil {
		return nil, err
	}
	if err := s.check(n.Scope, &n.Settings); err != nil {
		return nil, err
	}
	done, err := s.reserve(ctx, n.Scope, n.Managed)
	if err != nil {
		return nil, err
	}
	defer done()
	r, nonce := s.ref(n.Scope, n.ID), ulid.Make().String()
	re, err := s.saved(ctx, s.saveCall(r, nonce, packSettings(&n.Settings, n.Managed), n.Settings.Enabled, n.Secret))
	if err != nil {
		return nil, err
	}
	if readCode(re) == schema.CodeExists {
		return nil, &model.Error{Code: Exists, Message: "a webhook with this id exists; choose another id, change that one, or give it a new " +
			"secret if the answer that had it was lost"}
	}
	w, err := s.Get(ctx, n.Scope, n.ID)
	if err != nil {
		return nil, err
	}
	w.Secret = n.Secret
	return w, nil
}

// Update replaces the settings of a webhook. `managed` is true for the configuration, which alone may change managed webhooks. It fails
// when the webhook does not exist or the settings are invalid.
func (s *Service) Update(ctx context.Context, scope model.Scope, id string, to Settings, managed bool) (*Webhook, error) {
	ctx = s.store.Within(ctx, 0)
	if err := s.check(scope, &to); err != nil {
		return nil, err
	}
	w, err := s.changeable(ctx, scope, id, managed)
	if err != nil {
		return nil, err
	}
	re, err := s.saved(ctx, s.saveCall(s.ref(scope, w.ID), "", packSettings(&to, managed), to.Enabled, ""))
	if err != nil {
		return nil, err
	}
	if readCode(re) == schema.CodeNotFound {
		return nil, errNotFound
	}
	return s.Get(ctx, scope, id)
}

// Delete deletes a webhook and its pending deliveries. Requests in progress are cancelled soon, and may still arrive. It fails when the
// webhook does not exist, or when it is managed and the caller is not the configuration.
func (s *Service) Delete(ctx context.Context, scope model.Scope, id string, managed bool) error {
	ctx = s.store.Within(ctx, 0)
	if _, err := s.changeable(ctx, scope, id, managed); err != nil {
		return err
	}
	r := s.ref(scope, id)
	if _, err := s.store.Do(ctx, "deleteWebhook", s.removeCall(r)); err != nil {
		return err
	}
	// The courier of its shard reloads the webhooks. If this call fails, it does so after knownFor.
	_, _ = s.store.Do(ctx, "deleteWebhook", s.beginCall(r.shard, ulid.Make().String(), firstEntry, 0))
	return nil
}

// RotateSecret gives a webhook a new secret, a random one for "", and returns the webhook with it. The previous secret also signs for
// another day. It fails as Update does, or for an invalid secret.
func (s *Service) RotateSecret(ctx context.Context, scope model.Scope, id, secret string, managed bool) (*Webhook, error) {
	ctx = s.store.Within(ctx, 0)
	if secret == "" {
		secret = NewSecret()
	}
	if err := checkSecret("secret", secret); err != nil {
		return nil, err
	}
	if _, err := s.changeable(ctx, scope, id, managed); err != nil {
		return nil, err
	}
	re, err := s.store.Do(ctx, "rotateSecret", s.rotateCall(s.ref(scope, id), secret))
	if err != nil {
		return nil, err
	}
	if readCode(re) == schema.CodeNotFound {
		return nil, errNotFound
	}
	w, err := s.Get(ctx, scope, id)
	if err != nil {
		return nil, err
	}
	w.Secret = secret
	return w, nil
}

// Get returns a webhook, or an error when it does not exist.
func (s *Service) Get(ctx context.Context, scope model.Scope, id string) (*Webhook, error) {
	ctx = s.store.Within(ctx, 0)
	r := s.ref(scope, id)
	re, err := s.store.Do(ctx, "webhook", s.readCall([]hookRef{r}))
	if err != nil {
		return nil, err
	}
	if w := readRead(re, 0, r); w != nil {
		return w, nil
	}
	return nil, errNotFound
}

// List returns all webhooks of a scope, sorted by ID.
func (s *Service) List(ctx context.Context, scope model.Scope) ([]*Webhook, error) {
	ctx = s.store.Within(ctx, 0)
	return s.all(ctx, scope.String()+"/")
}

// all returns the webhooks whose names have this prefix, sorted by name.
func (s *Service) all(ctx context.Context, prefix string) ([]*Webhook, error) {
	var refs []hookRef
	for after, first := map[int]string{}, true; first || len(after) > 0; first = false {
		calls := []*store.Call{}
		for shard := range s.store.Keys {
			if from, more := after[shard]; first || more {
				calls = append(calls, s.listCall(shard, prefix, from, listAtOnce))
			}
		}
		s.store.DoBulk(ctx, "webhooks", calls)
		if err := store.FirstError(calls); err != nil {
			return nil, err
		}
		clear(after)
		for _, c := range calls {
			names := readList(c.Reply).names
			for _, name := range names {
				if scope, id, ok := schema.SplitName(name); ok {
					refs = append(refs, s.ref(scope, id))
				}
			}
			if len(names) == listAtOnce {
				after[c.Shard] = names[len(names)-1]
			}
		}
	}
	return s.readAll(ctx, refs)
}

func (s *Service) readAll(ctx context.Context, refs []hookRef) ([]*Webhook, error) {
	groups := schema.ByShard(refs, readAtOnce, func(r hookRef) int { return r.shard })
	calls := store.CallEach(groups, s.readCall)
	s.store.DoBulk(ctx, "webhooks", calls)
	if err := store.FirstError(calls); err != nil {
		return nil, err
	}
	found := make([]*Webhook, 0, len(refs))
	for i, group := range groups {
		for j, r := range group {
			if w := readRead(calls[i].Reply, j, r); w != nil {
				found = append(found, w)
			}
		}
	}
	slices.SortFunc(found, func(a, b *Webhook) int {
		return strings.Compare(schema.TaskName(a.Scope, a.ID), schema.TaskName(b.Scope, b.ID))
	})
	return found, nil
}

// changeable returns a webhook that the caller may change, or an error.
func (s *Service) changeable(ctx context.Context, scope model.Scope, id string, managed bool) (*Webhook, error) {
	w, err := s.Get(ctx, scope, id)
	if err == nil && w.Managed && !managed {
		return nil, &model.Error{Code: Managed, Message: "this webhook is managed by the deployment's configuration " +
			"(webhooks-file); change it there"}
	}
	return w, err
}

// check validates settings, including the URL.
func (s *Service) check(scope model.Scope, to *Settings) error {
	if err := to.validate(scope); err != nil {
		return err
	}
	if err := s.opts.Poster.Check(to.URL); err != nil {
		return invalid("url", "%s", err.Error())
	}
	return nil
}

// saved runs a call that changes what collectors must know, and notifies every shard: once it has returned, no collector handles an event
// without knowing the change. In shards where events were not collected before, collection starts now.
func (s *Service) saved(ctx context.Context, c *store.Call) (store.Reply, error) {
	now, err := s.events.Now(ctx)
	if err != nil {
		return nil, err
	}
	if s.store.DoDurably(ctx, "saveWebhook", c); c.Err != nil {
		return nil, c.Err
	}
	version := ulid.Make().String()
	_, err = s.store.EachShard(ctx, "saveWebhook", func(shard int, _ *schema.ShardKeys) *store.Call {
		entry := firstEntry
		if !now[shard].IsStart() {
			entry = now[shard].ID()
		}
		return s.beginCall(shard, version, entry, now[shard].Mark)
	})
	return c.Reply, err
}
