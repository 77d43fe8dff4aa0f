package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Cordon lets a worker take nothing new until it is uncordoned: it stays ONLINE, goes on with what it holds and does not end
// when it is idle. A worker that takes its place inherits the cordon. What was placed on it and waits is placed anew; what its
// creator pinned to it goes on waiting. The reason may be empty; called again the first one stands.
func (s *operations) Cordon(ctx context.Context, scope model.Scope, id, given string) (*model.Worker, error) {
	const op = "cordon"
	ctx = s.store.Within(ctx, 0)
	r, err := s.reader.findWorker(ctx, op, scope, id)
	if err != nil {
		return nil, err
	}
	w, err := s.change(ctx, op, r, s.scripts.cordonCall(r, true, given))
	if err == nil && w.Placed > 0 {
		err = s.holdings.UnpinAll(ctx, op, r, w.Queue)
	}
	return w, err
}

// Uncordon undoes a cordon. The reason goes into the event; it may be empty.
func (s *operations) Uncordon(ctx context.Context, scope model.Scope, id, given string) (*model.Worker, error) {
	const op = "uncordon"
	ctx = s.store.Within(ctx, 0)
	r, err := s.reader.findWorker(ctx, op, scope, id)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, op, r, s.scripts.cordonCall(r, false, given))
}
