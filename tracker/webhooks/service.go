package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// Poster sends requests to the outside.
type Poster interface {
	// Check returns an error for a URL that may not be saved, in words that follow its name. It contacts no other server, since it runs
	// during a request.
	Check(url string) error
	// Post returns the status of the response and the beginning of its body, or an error when there was no response.
	Post(ctx context.Context, url string, header map[string]string, body []byte) (status int, excerpt []byte, err error)
}

// Options configure a Service; all but the Registerer must be set.
type Options struct {
	Poster      Poster
	TenantBytes int64 // limit of the bytes in Redis of the deliveries of one tenant's webhooks
	Logger      *slog.Logger
	Registerer  prometheus.Registerer // nil: metrics are not registered
}

// Service manages webhooks and their deliveries. Its methods may be called from any goroutine.
type Service struct {
	store     *store.Store
	events    *events.Service
	scripts   *scripts
	opts      Options
	log       *slog.Logger
	metrics   *metrics
	creations creations
}

// New returns a service.
func New(s *store.Store, e *events.Service, o Options) *Service {
	return &Service{
		store: s, events: e, scripts: newScripts(s.Scripts), opts: o, log: o.Logger, metrics: newMetrics(o.Registerer),
		creations: creations{under: map[string]int{}},
	}
}

// These limit what is kept and how long a webhook may fail.
const (
	maxFinished    = 500                // finished deliveries, of each kind
	longestFailing = 5 * 24 * time.Hour // until a webhook is disabled
)

// waits are the times between the ten tries of a delivery: 75 hours in total, plus a random part of up to a tenth.
var waits = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour,
	24 * time.Hour,
}

// NoPoster is the Poster of processes without webhooks.
type NoPoster struct{}

var errNoPoster = errors.New("cannot be called: this process has no webhooks")

// Check refuses every URL.
func (NoPoster) Check(string) error { return errNoPoster }

// Post always fails.
func (NoPoster) Post(context.Context, string, map[string]string, []byte) (int, []byte, error) {
	return 0, nil, errNoPoster
}
