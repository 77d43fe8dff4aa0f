package schedules

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
)

// Service is what the handlers need of the domain's schedules.
type Service interface {
	Create(context.Context, schedules.Spec) (*schedules.Schedule, error)
	// Change may call change more than once, each time with the current schedule.
	Change(ctx context.Context, scope model.Scope, scheduleID string, change func(*schedules.Spec) error) (*schedules.Schedule, error)
	Get(ctx context.Context, scope model.Scope, scheduleID string) (*schedules.Schedule, error)
	List(context.Context, schedules.Filter) (*schedules.Page, error)
	Delete(ctx context.Context, scope model.Scope, scheduleID string) error
	Pause(ctx context.Context, scope model.Scope, scheduleID string) (*schedules.Schedule, error)
	Resume(ctx context.Context, scope model.Scope, scheduleID string) (*schedules.Schedule, error)
	NextFires(ctx context.Context, scope model.Scope, scheduleID string, count int) ([]time.Time, error)
	Fire(ctx context.Context, scope model.Scope, scheduleID string) (*schedules.Fire, error)
	Backfill(ctx context.Context, scope model.Scope, scheduleID string, from, to time.Time) (*schedules.BackfillResult, error)
}

// Handlers answer the routes of schedules.
type Handlers struct{ Schedules Service }
