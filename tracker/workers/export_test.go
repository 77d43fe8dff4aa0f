package workers

import (
	"context"

	"github.com/lubdub-io/lubdub/tracker/holdings"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// EndWithoutRecovery ends a worker like a process that dies right after the verdict.
func (s *Service) EndWithoutRecovery(scope model.Scope, id string) error {
	r, err := s.reader.findWorker(context.Background(), "test", scope, id)
	if err != nil {
		return err
	}
	end := s.scripts.statusCall(r, statusArgs{action: retire, end: model.WorkerForced, loss: true})
	_, err = s.reader.store.Do(context.Background(), "test", end)
	return err
}

// InventoriesTogether stores several heartbeats of a worker with one inventory before it processes the inventory of any of them,
// in the order of these positions.
func (s *Service) InventoriesTogether(scope model.Scope, id string, b WorkerBeat, order ...int) error {
	results := make([]*holdings.WorkerBeatResponse, len(order))
	for i := range results {
		var err error
		if results[i], err = s.registrar.storeBeat(context.Background(), scope, id, b); err != nil {
			return err
		}
	}
	for _, i := range order {
		if err := s.registrar.holdings.TakeInventory(context.Background(), results[i], b.Inventory); err != nil {
			return err
		}
	}
	return nil
}
