package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

func notFound(op string) error {
	return &model.Error{Code: NotFound, Op: op,
		Message: "no schedule with this id in this tenant and workspace; check the id, tenantId and workspaceId, or create it with " +
			"POST /v1/schedules"}
}

// Create saves a schedule that Validate has checked. Its first fire is the first one after now. Concurrent creations of one tenant
// may exceed its limit by their number.
func (s *Service) Create(ctx context.Context, d Spec) (*Schedule, error) {
	const op = "createSchedule"
	ctx = s.store.Within(ctx, 0)
	if d.ID == "" {
		d.ID = model.NewID("sch_")
	}
	if err := s.admit(ctx, op, d.Scope.Tenant); err != nil {
		return nil, err
	}
	r := s.ref(d.Scope, d.ID)
	c := s.saveCall(r, &d, model.NewFence()+model.NewFence(), "")
	s.store.DoDurably(ctx, op, c)
	if c.Err != nil {
		return nil, c.Err
	}
	if readCode(c.Reply) == schema.CodeExists {
		return nil, &model.Error{Code: Exists, Op: op,
			Message: "a schedule with this id exists in this workspace; change that one with PUT or PATCH, or choose another scheduleId"}
	}
	return s.one(ctx, op, r)
}

// admit refuses a schedule beyond the limit of its tenant.
func (s *Service) admit(ctx context.Context, op, tenant string) error {
	_, total, err := s.names(ctx, op, tenant+"/", "", 0, false)
	if err != nil {
		return err
	}
	if total >= s.opts.MaxSchedules {
		return &model.Error{Code: model.Overloaded, TooMany: true, Op: op, RetryAfter: time.Minute,
			Message: fmt.Sprintf("the tenant has %d schedules over all its workspaces, and may have %d; "+
				"delete those that are not needed", total, s.opts.MaxSchedules)}
	}
	return nil
}

// Change calls change on the current definition, validates the result and saves it. Fires missed since the last one are caught up
// under the new definition. change may be called more than once.
func (s *Service) Change(ctx context.Context, scope model.Scope, id string, change func(*Spec) error) (*Schedule, error) {
	const op = "changeSchedule"
	ctx = s.store.Within(ctx, 0)
	r := s.ref(scope, id)
	for {
		now, present, err := s.read(ctx, op, r)
		if err != nil {
			return nil, err
		}
		d := present.Spec
		if err := change(&d); err != nil {
			return nil, err
		}
		d.Scope, d.ID = scope, id
		if err := d.Validate(now); err != nil {
			return nil, err
		}
		if d.definition() == present.definition() {
			return present, s.complete(ctx, op, now, present) // it has already been changed like this
		}
		c := s.saveCall(r, &d, "", present.version)
		if s.store.DoDurably(ctx, op, c); c.Err != nil {
			return nil, c.Err
		}
		switch readCode(c.Reply) {
		case schema.CodeOK:
			return s.one(ctx, op, r)
		case schema.CodeNotFound:
			return nil, notFound(op)
		} // else it has changed meanwhile
	}
}

// Pause stops new fires; those that were recorded before still get their tasks.
func (s *Service) Pause(ctx context.Context, scope model.Scope, id string) (*Schedule, error) {
	return s.switched(ctx, "pauseSchedule", scope, id, toPaused)
}

// Resume allows fires again. The latest MaxCatchup missed fires are caught up.
func (s *Service) Resume(ctx context.Context, scope model.Scope, id string) (*Schedule, error) {
	return s.switched(ctx, "resumeSchedule", scope, id, toRunning)
}

// Delete deletes a schedule; its tasks stay.
func (s *Service) Delete(ctx context.Context, scope model.Scope, id string) error {
	_, err := s.switched(ctx, "deleteSchedule", scope, id, toDeleted)
	return err
}

func (s *Service) switched(ctx context.Context, op string, scope model.Scope, id string, to switchTo) (*Schedule, error) {
	ctx = s.store.Within(ctx, 0)
	r := s.ref(scope, id)
	c := s.switchCall(r, to)
	s.store.DoDurably(ctx, op, c)
	switch {
	case c.Err != nil:
		return nil, c.Err
	case readCode(c.Reply) == schema.CodeNotFound:
		return nil, notFound(op)
	case to == toDeleted:
		return nil, nil
	}
	return s.one(ctx, op, r)
}
