package schedules

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lubdub-io/lubdub/internal/cron"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Codes of refusals.
const (
	NotFound model.Code = "schedule_not_found"
	Exists   model.Code = "schedule_exists"
)

// Bounds of a schedule.
const (
	DefaultMaxCatchup = 100
	MaxMaxCatchup     = 1000
	MaxNext           = 100 // fires that one look ahead shows
	KeptFires         = 10  // that a schedule shows of those that were dealt with; schedule_settle.lua has the same number
)

// Spec is what a schedule says. Validate it before it is saved.
type Spec struct {
	Scope       model.Scope
	ID          string // empty in a creation: Lubdub makes one
	Cron        string // seconds minutes hours day-of-month month day-of-week [year], UTC
	SkipOverlap bool   // a fire is skipped while the task of the one before is not finished
	MaxCatchup  int    // missed fires that are caught up, the newest; 0: none
	Task        model.NewTask
}

// Validate checks all that can be judged without the store, and fills in what the task leaves out. A refusal is an *Error with
// the code Invalid or InvalidID whose message names the field as the API does.
func (d *Spec) Validate(now time.Time) error {
	for _, id := range []struct{ field, value string }{
		{"tenantId", d.Scope.Tenant}, {"workspaceId", d.Scope.Workspace}, {"scheduleId", d.ID},
	} {
		if id.value == "" && id.field == "scheduleId" {
			continue
		}
		if err := model.CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	if d.MaxCatchup < 0 || d.MaxCatchup > MaxMaxCatchup {
		return model.Invalidf("maxCatchup", "is %d; use 0 to %d", d.MaxCatchup, MaxMaxCatchup)
	}
	if err := d.checkCron(now); err != nil {
		return err
	}
	return d.checkTask(now)
}

func (d *Spec) checkCron(now time.Time) error {
	times, err := cron.Parse(d.Cron)
	var wrong *cron.Error
	switch {
	case errors.As(err, &wrong):
		return model.Invalidf("cron", "%s", wrong.Message)
	case err != nil:
		return err
	case times.Next(time.Time{}).IsZero():
		return model.Invalidf("cron", "is %q, which never fires: no date is all that it says, within the years 1970 to 2100; "+
			"right would be for example %q", model.Clip(d.Cron), cron.Example)
	case times.Next(now).IsZero():
		return model.Invalidf("cron", "is %q, which never fires again: its last time is over (it is %s here); right would be for example %q",
			model.Clip(d.Cron), now.UTC().Format(time.RFC3339), cron.Example)
	}
	return nil
}

// checkTask holds the task to what creations are held to, and to what only one task could be given.
func (d *Spec) checkTask(now time.Time) error {
	d.Task.Scope = d.Scope
	for _, f := range []struct {
		field string
		set   bool
	}{
		{"taskId", d.Task.TaskID != ""}, {"deadline", !d.Task.Deadline.IsZero()}, {"notBefore", !d.Task.NotBefore.IsZero()},
		{"idempotencyKey", d.Task.IdempotencyKey != ""},
	} {
		if f.set {
			return model.Invalidf("task."+f.field, "would be the same for each task that the schedule creates; leave it out")
		}
	}
	if d.Task.Queue == "" {
		return model.Invalidf("task.queue", "is missing; name the queue in which the schedule's tasks wait for workers")
	}
	err := d.Task.Validate(now)
	var e *model.Error
	var field *model.FieldError
	if errors.As(err, &e) && errors.As(e.Cause, &field) {
		return &model.Error{Code: e.Code, Op: e.Op, Message: "task." + e.Message, Cause: &model.FieldError{Field: "task." + field.Field}}
	}
	return err
}

// Schedule is one as it stands in the store.
type Schedule struct {
	Spec
	PausedAt  time.Time // zero: it is not
	CreatedAt time.Time
	ChangedAt time.Time // what it says
	Last      time.Time // fire that was dealt with; before the first, the creation
	Next      time.Time // fire to come; zero: none, or it is paused
	Fires     int64     // whose tasks were created
	Skipped   int64     // missed or not wanted
	Waiting   int       // fires that wait for their tasks
	Recent    []Fire    // dealt with, newest first, at most KeptFires

	version string
	resumed time.Time     // since when it has not been paused
	task    string        // of the last fire
	decided string        // fire that is to get a task
	bytes   int           // of its task
	backoff time.Duration // for how long its fires were let be, since the last of them was refused for now; 0: it was not
	named   time.Time     // since when tasks of its fires have the ids of taskOf; zero: not known yet
}

// Kind is where a fire comes from.
type Kind string

const (
	ByTime   Kind = "schedule"
	ByHand   Kind = "manual"
	Backfill Kind = "backfill"
)

// Outcome is what became of a fire.
type Outcome string

const (
	Created  Outcome = "CREATED"
	Skipped  Outcome = "SKIPPED" // the task of the fire before still ran
	Refused  Outcome = "REFUSED"
	ToCreate Outcome = "" // its task is still to be created
)

// Fire is one time at which a schedule fired.
type Fire struct {
	At      time.Time
	Kind    Kind
	Outcome Outcome
	NotedAt time.Time   // zero with ToCreate
	TaskID  string      // that was created; with Skipped that which still ran; with Refused empty
	State   model.State // of the task that was created; empty: it is forgotten
	Reason  model.Reason
	Error   string // with Refused: the code of the refusal
}

// timeOf writes a fire's time as its idempotency key has it.
func timeOf(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// toldTime writes a fire's time as its events have it, like all times of the API.
func toldTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// keyOf is the idempotency key of a fire.
func keyOf(id string, at time.Time) string { return model.FireKeyPrefix + id + ":" + timeOf(at) }

// firesHash stands where a request's hash does, so that no request with such a key is taken for a fire.
const firesHash = "schedule"

// taskOf names the task of a fire. It is the same whoever creates it, and sorts by the time of the fire. No request may name a task
// so, and the task says which schedule's it is.
func taskOf(scope model.Scope, id string, at time.Time) string {
	return model.FireTaskPrefix + fireULID(scope, id, at)
}

// olderTaskOf is how releases without FireTaskPrefix named it.
func olderTaskOf(scope model.Scope, id string, at time.Time) string {
	return "task_" + fireULID(scope, id, at)
}

func fireULID(scope model.Scope, id string, at time.Time) string {
	sum := sha256.Sum256([]byte(schema.TaskName(scope, id) + "/" + strconv.FormatInt(at.UnixMilli(), 10)))
	var u ulid.ULID
	_ = u.SetTime(uint64(max(at.UnixMilli(), 0))) // fails behind the year 10889
	_ = u.SetEntropy(sum[:10])                    // is as long as it must be
	return u.String()
}

// mayBeOlder reports whether the task of a fire may be one that an older release has created and that its idempotency key does not
// tell of any more. Releases may run beside each other for a while.
func (s *Schedule) mayBeOlder(at, now time.Time) bool {
	return now.Sub(at) >= model.IdempotencyRetention && (s.named.IsZero() || at.Before(s.named.Add(model.IdempotencyRetention)))
}
