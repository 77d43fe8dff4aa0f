package stats

import (
	"context"
	"slices"
	"strings"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// ScopeFilter selects scopes that have tasks or workers. Zero fields do not filter.
type ScopeFilter struct {
	Tenant     string
	Descending bool
	PageSize   int    // 1 to 100
	After      string // Next of the previous page; empty: from the start
}

// ScopePage is one page of scopes, ordered by name.
type ScopePage struct {
	Scopes []model.Scope
	Next   string // After for the next page; empty: this is the last one
}

// Scopes returns one page of the scopes in use.
func (s *Service) Scopes(ctx context.Context, f ScopeFilter) (*ScopePage, error) {
	ctx = s.store.Within(ctx, 0)
	after := f.After
	if after != "" {
		after += "/"
	}
	size := min(max(f.PageSize, 1), 100)
	names, err := s.scopes(ctx, f, after, size+1)
	if err != nil {
		return nil, err
	}
	page := &ScopePage{}
	if len(names) > size {
		names = names[:size]
		page.Next = strings.TrimSuffix(names[size-1], "/")
	}
	for _, name := range names {
		tenant, workspace, _ := strings.Cut(strings.TrimSuffix(name, "/"), "/")
		page.Scopes = append(page.Scopes, model.Scope{Tenant: tenant, Workspace: workspace})
	}
	return page, nil
}

// scopesAtOnce is how many scopes one script lists.
const scopesAtOnce = 250

// scopes merges the scopes of all shards, up to a limit, as <tenant>/<workspace>/, which is the order of the indexes.
func (s *Service) scopes(ctx context.Context, f ScopeFilter, after string, limit int) (names []string, err error) {
	for len(names) < limit {
		want := min(limit-len(names), scopesAtOnce)
		calls := make([]*store.Call, s.store.Shards())
		for shard := range calls {
			calls[shard] = s.scopesCall(shard, f, after, want)
		}
		s.store.DoBulk(ctx, "scopes", calls)
		if err := store.FirstError(calls); err != nil {
			return nil, err
		}
		var found []string
		for _, c := range calls {
			found = append(found, readScopes(c.Reply)...)
		}
		slices.Sort(found)
		found = slices.Compact(found)
		if f.Descending {
			slices.Reverse(found)
		}
		if len(found) < want {
			return append(names, found...), nil
		}
		names = append(names, found[:want]...)
		after = names[len(names)-1]
	}
	return names, nil
}
