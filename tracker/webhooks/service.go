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

// Poster reaches the outside.
type Poster interface {
	// Check returns what is wrong with a URL that is to be saved, in words that follow its name; nil if nothing is. It asks no
	// other server: it is called while a request is answered.
	Check(url string) error
	// Post returns the status of the answer and the beginning of its body, or why there was no answer.
	Post(ctx context.Context, url string, header map[string]string, body []byte) (status int, excerpt []byte, err error)
}

// Options configure a Service; all but the Registerer must be set.
type Options struct {
	Poster      Poster
	TenantBytes int64 // of Redis that deliveries of one tenant's webhooks may take
	Logger      *slog.Logger
	Registerer  prometheus.Registerer // nil: metrics are registered nowhere
}

// Service keeps webhooks and what they are to be sent. Its methods may be called from any goroutine.
type Service struct {
	store     *store.Store
	events    *events.Service
	scripts   *scripts
	opts      Options
	log       *slog.Logger
	metrics   *metrics
	creations creations
}

// New makes the service.
func New(s *store.Store, e *events.Service, o Options) *Service {
	return &Service{
		store: s, events: e, scripts: newScripts(s.Scripts), opts: o, log: o.Logger, metrics: newMetrics(o.Registerer),
		creations: creations{under: map[string]int{}},
	}
}

// What is kept and how long is tried.
const (
	keptOfEach     = 500                // deliveries that are over, of each kind
	longestFailing = 5 * 24 * time.Hour // until a webhook is switched off
)

// waits are the times between the ten tries of a delivery: 75 hours in all, to which up to a tenth is added by chance.
var waits = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour,
	24 * time.Hour,
}

// NoPoster is for processes that reach nobody outside.
type NoPoster struct{}

var errNoPoster = errors.New("cannot be called: this process has no webhooks")

// Check refuses every URL.
func (NoPoster) Check(string) error { return errNoPoster }

// Post reaches nobody.
func (NoPoster) Post(context.Context, string, map[string]string, []byte) (int, []byte, error) {
	return 0, nil, errNoPoster
}
