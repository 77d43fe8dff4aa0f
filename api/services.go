package api

import (
	"github.com/lubdub-io/lubdub/api/beats"
	"github.com/lubdub-io/lubdub/api/events"
	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/queues"
	"github.com/lubdub-io/lubdub/api/schedules"
	"github.com/lubdub-io/lubdub/api/system"
	"github.com/lubdub-io/lubdub/api/tasks"
	"github.com/lubdub-io/lubdub/api/webhooks"
	"github.com/lubdub-io/lubdub/api/workers"
	"github.com/lubdub-io/lubdub/tracker"
)

// Services is what the HTTP server needs of the tracker, by resource. Each package of routes declares its part. Every error is a
// *model.Error.
type Services struct {
	Beats interface {
		httpapi.Attempts
		beats.Service
		tasks.Attempts
	}
	Tasks   tasks.Service
	Workers interface {
		httpapi.Registry
		workers.Service
	}
	Machines workers.Machines
	Holdings interface {
		httpapi.Owners
		workers.Notices
	}
	Queues      queues.Service
	Schedules   schedules.Service
	Webhooks    webhooks.Service
	Events      events.Service
	Stats       system.Stats
	Revocations interface {
		httpapi.RevocationList
		system.Revocations
	}
	Sweeper system.Sweeper
	Brake   system.Brake
	Store   system.Store
}

// ServicesOf returns the services of a tracker.
func ServicesOf(t *tracker.Tracker) Services {
	return Services{
		Beats: t.Beats, Tasks: t.Tasks, Workers: t.Workers, Machines: t.Workers, Holdings: t.Holdings, Queues: t.Queues,
		Schedules: t.Schedules, Webhooks: t.Webhooks, Events: t.Events, Stats: t.Stats, Revocations: t.Revocations, Sweeper: t.Sweeper,
		Brake: t.Brake, Store: t.Store,
	}
}
