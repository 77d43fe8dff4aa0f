package beats

import (
	"sync"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Service takes heartbeats.
type Service interface {
	Beat(*beats.Beat)       // returns when the beat has its result
	BeatMany([]*beats.Beat) // returns when each has its result
	// Submit does not wait: it calls done, on other goroutines, with the beats that have their result, each once. done must not block.
	Submit(batch []*beats.Beat, done func([]*beats.Beat))
	CancelDelivered(*model.Attempt) // a reply that included the cancel was written to the connection; does not block
}

// Handlers answer the routes of tasks' heartbeats.
type Handlers struct {
	api      *httpapi.API
	beats    Service
	requests *sync.Pool // of *beatRequest
}

// New creates the handlers.
func New(a *httpapi.API, b Service) *Handlers {
	return &Handlers{api: a, beats: b, requests: newBeatRequests(a.Metrics)}
}
