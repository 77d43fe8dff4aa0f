package api

import (
	"sync"

	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// BeatService takes heartbeats.
type BeatService interface {
	Beat(*beats.Beat)       // returns when the beat has its result
	BeatMany([]*beats.Beat) // returns when each has its result
	// Land does not wait: landed is called, on other goroutines, with those that have their result, each once. It must not block.
	Land(batch []*beats.Beat, landed func([]*beats.Beat))
	CancelDelivered(*model.Attempt) // a reply that included the cancel was handed to the connection; does not block
}

// beatHandlers answer the routes of tasks' heartbeats.
type beatHandlers struct {
	api      *API
	beats    BeatService
	requests *sync.Pool // of *beatRequest
}

// newBeatHandlers makes the handlers.
func newBeatHandlers(a *API, b BeatService) *beatHandlers {
	return &beatHandlers{api: a, beats: b, requests: newBeatRequests(a.Metrics)}
}
