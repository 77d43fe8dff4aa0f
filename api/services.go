package api

import (
	"github.com/lubdub-io/lubdub/tracker"
)

// Services is what the front end needs of the tracker, by what it is about: each package of routes declares its part. Every error is a
// *model.Error.
type Services struct {
	Beats interface {
		Attempts
		BeatService
		AttemptService
	}
	Tasks   TaskService
	Workers interface {
		Registry
		WorkerService
	}
	Machines MachineService
	Holdings interface {
		Owners
		NoticeService
	}
	Queues      QueueService
	Schedules   ScheduleService
	Webhooks    WebhookService
	Events      EventService
	Stats       StatService
	Revocations interface {
		RevocationList
		RevocationService
	}
	Sweeper SweepService
	Store   StoreService
}

// ServicesOf are those of a tracker.
func ServicesOf(t *tracker.Tracker) Services {
	return Services{
		Beats: t.Beats, Tasks: t.Tasks, Workers: t.Workers, Machines: t.Workers, Holdings: t.Holdings, Queues: t.Queues,
		Schedules: t.Schedules, Webhooks: t.Webhooks, Events: t.Events, Stats: t.Stats, Revocations: t.Revocations, Sweeper: t.Sweeper,
		Store: t.Store,
	}
}
