package tasks

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// LabelsOf returns the labels of tasks of one scope by ID, without tasks that do not exist.
func (s *Service) LabelsOf(ctx context.Context, op string, scope model.Scope, ids []string) (map[string]map[string]string, error) {
	refs := make([]*schema.TaskRef, len(ids))
	for i, id := range ids {
		refs[i] = s.store.Ref(scope, id)
	}
	if err := s.resolve(ctx, op, refs); err != nil {
		return nil, err
	}
	found, err := s.readAll(ctx, op, refs, andLabels)
	if err != nil {
		return nil, err
	}
	labels := map[string]map[string]string{}
	for i, task := range found {
		if task != nil {
			labels[ids[i]] = task.Labels
		}
	}
	return labels, nil
}
