package api

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/tracker"
)

// What the fake Tracker answers about schedules, and the refusing one.

func fakeSchedule(d tracker.ScheduleSpec) *tracker.Schedule {
	return &tracker.Schedule{Spec: d, CreatedAt: fakeTime, ChangedAt: fakeTime, Last: fakeTime}
}

func (f *fakeTracker) CreateSchedule(_ context.Context, d tracker.ScheduleSpec) (*tracker.Schedule, error) {
	return fakeSchedule(d), nil
}

func (f *fakeTracker) ChangeSchedule(
	_ context.Context, scope tracker.Scope, id string, change func(*tracker.ScheduleSpec) error,
) (*tracker.Schedule, error) {
	d := tracker.ScheduleSpec{Scope: scope, ID: id}
	if err := change(&d); err != nil {
		return nil, err
	}
	return fakeSchedule(d), nil
}

func (f *fakeTracker) Schedule(_ context.Context, scope tracker.Scope, id string) (*tracker.Schedule, error) {
	return fakeSchedule(tracker.ScheduleSpec{Scope: scope, ID: id}), nil
}

func (f *fakeTracker) Schedules(context.Context, tracker.ScheduleFilter) (*tracker.SchedulePage, error) {
	return &tracker.SchedulePage{}, nil
}

func (f *fakeTracker) DeleteSchedule(context.Context, tracker.Scope, string) error { return nil }

func (f *fakeTracker) PauseSchedule(_ context.Context, scope tracker.Scope, id string) (*tracker.Schedule, error) {
	return fakeSchedule(tracker.ScheduleSpec{Scope: scope, ID: id}), nil
}

func (f *fakeTracker) ResumeSchedule(_ context.Context, scope tracker.Scope, id string) (*tracker.Schedule, error) {
	return fakeSchedule(tracker.ScheduleSpec{Scope: scope, ID: id}), nil
}

func (f *fakeTracker) NextFires(context.Context, tracker.Scope, string, int) ([]time.Time, error) {
	return nil, nil
}

func (f *fakeTracker) FireSchedule(context.Context, tracker.Scope, string) (*tracker.Fire, error) {
	return &tracker.Fire{At: fakeTime, TaskID: "task_1"}, nil
}

func (f *fakeTracker) BackfillSchedule(context.Context, tracker.Scope, string, time.Time, time.Time) (*tracker.Asked, error) {
	return &tracker.Asked{}, nil
}

func (r *refusingTracker) CreateSchedule(_ context.Context, d tracker.ScheduleSpec) (*tracker.Schedule, error) {
	return nil, r.err
}

func (r *refusingTracker) ChangeSchedule(
	_ context.Context, scope tracker.Scope, id string, change func(*tracker.ScheduleSpec) error,
) (*tracker.Schedule, error) {
	return nil, r.err
}

func (r *refusingTracker) Schedule(_ context.Context, scope tracker.Scope, id string) (*tracker.Schedule, error) {
	return nil, r.err
}

func (r *refusingTracker) Schedules(context.Context, tracker.ScheduleFilter) (*tracker.SchedulePage, error) {
	return nil, r.err
}

func (r *refusingTracker) DeleteSchedule(context.Context, tracker.Scope, string) error { return r.err }

func (r *refusingTracker) PauseSchedule(_ context.Context, scope tracker.Scope, id string) (*tracker.Schedule, error) {
	return nil, r.err
}

func (r *refusingTracker) ResumeSchedule(_ context.Context, scope tracker.Scope, id string) (*tracker.Schedule, error) {
	return nil, r.err
}

func (r *refusingTracker) NextFires(context.Context, tracker.Scope, string, int) ([]time.Time, error) {
	return nil, r.err
}

func (r *refusingTracker) FireSchedule(context.Context, tracker.Scope, string) (*tracker.Fire, error) {
	return nil, r.err
}

func (r *refusingTracker) BackfillSchedule(context.Context, tracker.Scope, string, time.Time, time.Time) (*tracker.Asked, error) {
	return nil, r.err
}
