package beats

import (
	"context"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
)

// Client is what package client offers to packages worker and workertest and not to users; package client fills it in when it is
// initialised. Its types are any here, since this package cannot import it.
var Client struct {
	// Clock returns the clock of a *client.Client.
	Clock func(client any) clock.Clock
	// WithClock returns a client.Option that sets the clock.
	WithClock func(clock.Clock) (option any)
	// HeldBy returns a client.TrackOption that leaves the heartbeats of an attempt to a worker.
	HeldBy func(Holder) (trackOption any)
	// FirstAnswer returns when a server first accepted a heartbeat of a *client.Attempt; zero: none was.
	FirstAnswer func(attempt any) time.Time
	// Over reports that a *client.Attempt is no longer ours.
	Over func(attempt any) bool
	// Heartbeat sends one heartbeat for each of the attempts that a worker holds, in separate requests; the worker lists them in
	// its own heartbeats otherwise. It fails if any of them could not be stored now.
	Heartbeat func(ctx context.Context, client any, all []Attempt) error
}
