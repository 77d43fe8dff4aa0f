package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker"
)

// Tracker is what the front end needs of the domain; *tracker.Tracker is it. Every error is a *tracker.Error.
type Tracker interface {
	Attempt(tracker.Attempt) *tracker.Attempt // fills in an attempt's derived names; the result is cached with its token
	Beat(*tracker.Beat)                       // returns when the beat has its one fate
	Beats([]*tracker.Beat)                    // returns when each has its fate
	// Land does not wait: landed is called, on other goroutines, with those that have their fate, each once. It must not block.
	Land(beats []*tracker.Beat, landed func([]*tracker.Beat))
	CancelDelivered(*tracker.Attempt) // a reply that carried the cancel was handed to the connection; does not block

	Start(context.Context, *tracker.Attempt, tracker.Report) (tracker.Acknowledged, error)
	Complete(context.Context, *tracker.Attempt, tracker.Completion) (tracker.Completed, error)

	Create(context.Context, tracker.NewTask) (*tracker.Created, error)
	CreateBatch(context.Context, []tracker.NewTask) []tracker.CreateResult // in the same order
	NextAttempt(ctx context.Context, scope tracker.Scope, taskID string, from int) (*tracker.Created, error)
	Cancel(ctx context.Context, scope tracker.Scope, taskID string, how tracker.CancelRequest) (*tracker.Task, error)
	Get(ctx context.Context, scope tracker.Scope, taskID string) (*tracker.Task, error)
	List(context.Context, tracker.TaskFilter) (*tracker.TaskPage, error)
	CancelTasks(ctx context.Context, f tracker.TaskFilter, how tracker.CancelRequest, dryRun bool) (*tracker.ActedOnTasks, error)
	RetryTasks(ctx context.Context, f tracker.TaskFilter, dryRun bool) (*tracker.ActedOnTasks, error)
	Run(ctx context.Context, scope tracker.Scope, runID string) (*tracker.Run, error)
	CancelRun(ctx context.Context, scope tracker.Scope, runID string, how tracker.CancelRequest) (*tracker.Run, error)

	Register(context.Context, tracker.NewWorker) (*tracker.Registered, error)
	AdoptWorker(ctx context.Context, scope tracker.Scope, workerID string, record []string) error
	BeatWorker(ctx context.Context, scope tracker.Scope, workerID string, b tracker.WorkerBeat) (*tracker.WorkerHeard, error)
	Worker(ctx context.Context, scope tracker.Scope, workerID string) (*tracker.Worker, error)
	Workers(context.Context, tracker.WorkerFilter) (*tracker.WorkerPage, error)
	DrainWorker(ctx context.Context, scope tracker.Scope, workerID string, d tracker.Drain) (*tracker.Worker, error)
	DrainWorkers(ctx context.Context, f tracker.WorkerFilter, d tracker.Drain, dryRun bool) (*tracker.Drained, error)
	ResumeWorker(ctx context.Context, scope tracker.Scope, workerID, reason string) (*tracker.Worker, error)
	RetireWorker(ctx context.Context, scope tracker.Scope, workerID string, end tracker.WorkerReason, reason string) (*tracker.Worker, error)
	CordonWorker(ctx context.Context, scope tracker.Scope, workerID, reason string) (*tracker.Worker, error)
	UncordonWorker(ctx context.Context, scope tracker.Scope, workerID, reason string) (*tracker.Worker, error)
	ActOnWorkers(ctx context.Context, act tracker.WorkerAct, f tracker.WorkerFilter, reason string, dryRun bool) (*tracker.Acted, error)
	Select(context.Context, tracker.Selector) (*tracker.Selection, error)
	Machine(ctx context.Context, scope tracker.Scope, machineID string) (*tracker.Machine, error)
	Machines(context.Context, tracker.MachineFilter) (*tracker.MachinePage, error)
	DrainMachine(ctx context.Context, scope tracker.Scope, machineID string, d tracker.Drain) (*tracker.Drained, error)
	OfflineMachine(ctx context.Context, scope tracker.Scope, machineID, reason string) (*tracker.Acted, error)
	ResumeMachine(ctx context.Context, scope tracker.Scope, machineID, reason string) (*tracker.Resumed, error)
	Sweep(context.Context) (tracker.SweepResult, error)
	Release(ctx context.Context, scope tracker.Scope, lasts time.Duration) (*tracker.Released, error)

	Revoke(context.Context, tracker.Revocation) error
	// HeedRevocations has f told of all tokens that were taken back and which of that is new, now and whenever it changes.
	HeedRevocations(f func(all, news []tracker.Revocation))

	// Owned returns nil for attempts that are not the worker's.
	Owned(ctx context.Context, scope tracker.Scope, workerID string, names []tracker.OwnedAttempt) ([]*tracker.Attempt, error)
	// Notified records that a reply which carried all the notices was handed to the connection. It does not block.
	Notified(*tracker.WorkerHeard)
	// Claim may wait as long as the request says, or until the context ends.
	Claim(context.Context, tracker.ClaimRequest) ([]*tracker.Envelope, error)
	Queues(context.Context, tracker.Scope) ([]*tracker.Queue, error)
	Queue(ctx context.Context, scope tracker.Scope, queue string) (*tracker.Queue, error)
	PauseQueue(ctx context.Context, scope tracker.Scope, queue string) (created bool, err error)
	ResumeQueue(ctx context.Context, scope tracker.Scope, queue string) error

	CreateSchedule(context.Context, tracker.ScheduleSpec) (*tracker.Schedule, error)
	// ChangeSchedule may call change more than once, each time with what the schedule says then.
	ChangeSchedule(
		ctx context.Context, scope tracker.Scope, scheduleID string, change func(*tracker.ScheduleSpec) error) (*tracker.Schedule, error)
	Schedule(ctx context.Context, scope tracker.Scope, scheduleID string) (*tracker.Schedule, error)
	Schedules(context.Context, tracker.ScheduleFilter) (*tracker.SchedulePage, error)
	DeleteSchedule(ctx context.Context, scope tracker.Scope, scheduleID string) error
	PauseSchedule(ctx context.Context, scope tracker.Scope, scheduleID string) (*tracker.Schedule, error)
	ResumeSchedule(ctx context.Context, scope tracker.Scope, scheduleID string) (*tracker.Schedule, error)
	NextFires(ctx context.Context, scope tracker.Scope, scheduleID string, count int) ([]time.Time, error)
	FireSchedule(ctx context.Context, scope tracker.Scope, scheduleID string) (*tracker.Fire, error)
	BackfillSchedule(ctx context.Context, scope tracker.Scope, scheduleID string, from, to time.Time) (*tracker.Asked, error)

	Events(context.Context, tracker.EventQuery) (*tracker.EventPage, error)
	// FollowEvents returns a listener behind a cursor, which field names in refusals; "": from now on.
	FollowEvents(ctx context.Context, f tracker.EventFilter, field, after string) (*tracker.EventListener, error)

	CreateWebhook(context.Context, tracker.NewWebhook) (*tracker.Webhook, error)
	UpdateWebhook(ctx context.Context, scope tracker.Scope, id string, to tracker.HookSettings, managed bool) (*tracker.Webhook, error)
	DeleteWebhook(ctx context.Context, scope tracker.Scope, id string, managed bool) error
	RotateSecret(ctx context.Context, scope tracker.Scope, id, secret string, managed bool) (*tracker.Webhook, error)
	Webhook(ctx context.Context, scope tracker.Scope, id string) (*tracker.Webhook, error)
	Webhooks(context.Context, tracker.Scope) ([]*tracker.Webhook, error)
	Test(ctx context.Context, scope tracker.Scope, webhookID string) (*tracker.Delivery, error)
	Deliveries(context.Context, tracker.DeliveryFilter) (*tracker.DeliveryPage, error)
	Redeliver(ctx context.Context, scope tracker.Scope, webhookID, deliveryID string) error
	RedeliverSince(ctx context.Context, scope tracker.Scope, webhookID, after string) (*tracker.Redelivered, error)

	Stats(ctx context.Context, scope tracker.Scope) (*tracker.Stats, error) // an empty half stands for all
	Verdicts(context.Context, tracker.VerdictQuery) (*tracker.Verdicts, error)
	PoisonTasks(context.Context, tracker.Scope) ([]tracker.PoisonTask, error)
	RecentlyLost(context.Context, tracker.Scope) (*tracker.LostWorkers, error)
	System(context.Context) (*tracker.System, error)
	NodesHealth(context.Context) []tracker.NodeHealth
	QueuesNow(context.Context, tracker.Scope) ([]*tracker.Queue, error) // as Queues, perhaps a second old
	Scopes(context.Context, tracker.ScopeFilter) (*tracker.ScopePage, error)

	Skew() time.Duration         // how far the store's clock is ahead of this process's
	Ready(context.Context) error // what is wrong with the store; nil: nothing
}

// DefaultIdleTimeout is how long a connection may idle between two requests. Whatever keeps connections to a Server alive
// must close them sooner, or a request may meet one that is just being closed.
const DefaultIdleTimeout = 90 * time.Second

// Config of a Server. Zero fields mean the default that their comment names; Tracker, Keys and PublicURL must
// be given.
type Config struct {
	Tracker   Tracker
	Keys      *token.Keyring
	PublicURL string // what envelopes carry as callbackBaseUrl, for example https://lubdub.example.com
	Version   string // of the build; empty: "devel"
	BasePath  string // below which a proxy shows the server, such as /lubdub; its requests may come with it or without. Empty: /

	Logger     *slog.Logger          // nil: slog.Default()
	Registerer prometheus.Registerer // where metrics are registered; nil: nowhere
	Gatherer   prometheus.Gatherer   // what /metrics shows; nil: the Registerer when it can, else nothing

	TokenCacheSize int // verified tokens kept, about 1 KB each, rounded up to a power of two; must be given
	MaxConns       int // open connections; for one more another gives way, or it is answered 503; must be given
	MaxControl     int // requests of the control plane under way; one more is answered 503; 0: a sixteenth of MaxConns, at least 16
	MaxStreams     int // streams of events; one more is answered 503; 0: half of MaxConns, at least 16
	MaxBodyBytes   int // memory of request bodies above 16 KiB; one more is answered 503; 0: 256 MiB. Tests have less

	// What each tenant may send a second; more is answered 429. 0: as much as it likes.
	TenantBeats int // heartbeats of tasks and workers, and the other callbacks
	TenantCalls int // everything else that takes a token

	// AdminHosts are the names under which operators reach ServeAdmin's pages, besides addresses and localhost; another
	// Host is refused with 421.
	AdminHosts []string

	// On Linux, TCP connections of the API are served by event loops, and by a goroutine each while they ask for anything but
	// to beat.
	NoEventLoop bool // every connection has a goroutine of its own instead, as over TLS and on other systems; for tests

	shareFrom int // so many answers that come together a loop does not write alone; 0: as suits the machine

	TLS *tls.Config // of the API's listener; nil: it speaks plain HTTP

	ReadTimeout  time.Duration // for one request to arrive whole; 0: 10 s
	WriteTimeout time.Duration // for one answer to be taken; 0: 10 s
	IdleTimeout  time.Duration // between two requests of a connection; 0: DefaultIdleTimeout

	Now func() time.Time // tells tokens' and deadlines' time; nil: this process's, corrected by Tracker.Skew. For tests
}

func (c *Config) setDefaults() error {
	switch {
	case c.Tracker == nil:
		return errors.New("api: Config.Tracker is missing")
	case c.Keys == nil:
		return errors.New("api: Config.Keys is missing")
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("api: the public URL %q must be http://host or https://host, with a path at most", c.PublicURL)
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if c.BasePath != "" && (c.BasePath[0] != '/' || strings.HasSuffix(c.BasePath, "/") || strings.ContainsAny(c.BasePath, `?#%"\`)) {
		return fmt.Errorf("api: the base path %q must be like /lubdub", c.BasePath)
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Gatherer == nil {
		c.Gatherer, _ = c.Registerer.(prometheus.Gatherer)
	}
	if c.TokenCacheSize <= 0 || c.MaxConns <= 0 {
		return errors.New("api: Config.TokenCacheSize and Config.MaxConns must be given")
	}
	for _, n := range []struct {
		field *int
		value int
	}{{&c.MaxControl, max(16, c.MaxConns/16)}, {&c.MaxStreams, max(16, c.MaxConns/2)}, {&c.MaxBodyBytes, 256 << 20}, {&c.TenantBeats, 0},
		{&c.TenantCalls, 0}} {
		if *n.field < 0 {
			return errors.New("api: sizes and limits must not be negative")
		}
		if *n.field == 0 {
			*n.field = n.value
		}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.ReadTimeout, 10 * time.Second},
		{&c.WriteTimeout, 10 * time.Second},
		{&c.IdleTimeout, DefaultIdleTimeout},
	} {
		if *d.field < 0 {
			return errors.New("api: timeouts must not be negative")
		}
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return nil
}
