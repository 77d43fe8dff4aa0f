package api

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schedules"
)

// What the fake Tracker answers about schedules, and the refusing one.

func fakeSchedule(d schedules.Spec) *schedules.Schedule {
	return &schedules.Schedule{Spec: d, CreatedAt: fakeTime, ChangedAt: fakeTime, Last: fakeTime}
}

func (f fakeSchedules) Create(_ context.Context, d schedules.Spec) (*schedules.Schedule, error) {
	return fakeSchedule(d), nil
}

func (f fakeSchedules) Change(
	_ context.Context, scope model.Scope, id string, change func(*schedules.Spec) error,
) (*schedules.Schedule, error) {
	d := schedules.Spec{Scope: scope, ID: id}
	if err := change(&d); err != nil {
		return nil, err
	}
	return fakeSchedule(d), nil
}

func (f fakeSchedules) Get(_ context.Context, scope model.Scope, id string) (*schedules.Schedule, error) {
	return fakeSchedule(schedules.Spec{Scope: scope, ID: id}), nil
}

func (f fakeSchedules) List(context.Context, schedules.Filter) (*schedules.Page, error) {
	return &schedules.Page{}, nil
}

func (f fakeSchedules) Delete(context.Context, model.Scope, string) error { return nil }

func (f fakeSchedules) Pause(_ context.Context, scope model.Scope, id string) (*schedules.Schedule, error) {
	return fakeSchedule(schedules.Spec{Scope: scope, ID: id}), nil
}

func (f fakeSchedules) Resume(_ context.Context, scope model.Scope, id string) (*schedules.Schedule, error) {
	return fakeSchedule(schedules.Spec{Scope: scope, ID: id}), nil
}

func (f *fakeTracker) NextFires(context.Context, model.Scope, string, int) ([]time.Time, error) {
	return nil, nil
}

func (f fakeSchedules) Fire(context.Context, model.Scope, string) (*schedules.Fire, error) {
	return &schedules.Fire{At: fakeTime, TaskID: "task_1"}, nil
}

func (f fakeSchedules) Backfill(context.Context, model.Scope, string, time.Time, time.Time) (*schedules.BackfillResult, error) {
	return &schedules.BackfillResult{}, nil
}

func (r refusingSchedules) Create(_ context.Context, d schedules.Spec) (*schedules.Schedule, error) {
	return nil, r.err
}

func (r refusingSchedules) Change(
	_ context.Context, scope model.Scope, id string, change func(*schedules.Spec) error,
) (*schedules.Schedule, error) {
	return nil, r.err
}

func (r refusingSchedules) Get(_ context.Context, scope model.Scope, id string) (*schedules.Schedule, error) {
	return nil, r.err
}

func (r refusingSchedules) List(context.Context, schedules.Filter) (*schedules.Page, error) {
	return nil, r.err
}

func (r refusingSchedules) Delete(context.Context, model.Scope, string) error { return r.err }

func (r refusingSchedules) Pause(_ context.Context, scope model.Scope, id string) (*schedules.Schedule, error) {
	return nil, r.err
}

func (r refusingSchedules) Resume(_ context.Context, scope model.Scope, id string) (*schedules.Schedule, error) {
	return nil, r.err
}

func (r refusingSchedules) NextFires(context.Context, model.Scope, string, int) ([]time.Time, error) {
	return nil, r.err
}

func (r refusingSchedules) Fire(context.Context, model.Scope, string) (*schedules.Fire, error) {
	return nil, r.err
}

func (r refusingSchedules) Backfill(context.Context, model.Scope, string, time.Time, time.Time) (*schedules.BackfillResult, error) {
	return nil, r.err
}
