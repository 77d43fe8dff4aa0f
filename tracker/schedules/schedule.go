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
	MaxNext           = 100 // fires that a preview returns
	MaxRecent         = 10  // recent fires that a schedule keeps; schedule_settle.lua has the same number
)

// Spec is the definition of a schedule. Validate it before it is saved.
type Spec struct {
	Scope       model.Scope
	ID          string // empty in a creation: Lubdub generates one
	Cron        string // as cron.Parse takes it
	SkipOverlap bool   // a fire is skipped while the task of the previous one is not finished
	MaxCatchup  int    // how many missed fires are caught up, the latest ones; 0: none
	Task        model.NewTask
}

// Validate checks what can be checked without the store and sets the defaults of the task. It fails with an *Error with the code
// Invalid or InvalidID whose message names the field as the API does.
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
			"for example %q", model.Clip(d.Cron), cron.Example)
	case times.Next(now).IsZero():
		return model.Invalidf("cron", "is %q, which never fires again: its last time has passed (it is %s here); for example %q",
			model.Clip(d.Cron), now.UTC().Format(time.RFC3339), cron.Example)
	}
	d.Cron = cron.WithSeconds(d.Cron)
	return nil
}

// checkTask applies the checks of creations to the task, and refuses fields that only a single task can have.
func (d *Spec) checkTask(now time.Time) error {
	d.Task.Scope = d.Scope
	for _, f := range []struct {
		field string
		set   bool
	}{
		{"taskId", d.Task.TaskID != ""}, {"deadline", !d.Task.Deadline.IsZero()},
		{"runAt", !d.Task.RunAt.IsZero()}, {"delayMs", d.Task.Delay != 0},
		{"idempotencyKey", d.Task.IdempotencyKey != ""},
	} {
		if f.set {
			return model.Invalidf("task."+f.field, "would be the same for each task that the schedule creates; omit it")
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

// Schedule is a stored schedule.
type Schedule struct {
	Spec
	PausedAt  time.Time // zero: it is not paused
	CreatedAt time.Time
	ChangedAt time.Time // of the definition
	Last      time.Time // the last fire that was handled; before the first, the creation
	Next      time.Time // the next fire; zero: none, or it is paused
	Fires     int64     // whose tasks were created
	Skipped   int64     // missed or not wanted
	Waiting   int       // fires that wait for their tasks
	Recent    []Fire    // handled, latest first, at most MaxRecent

	version string
	resumed time.Time     // since when it has not been paused
	task    string        // of the last fire
	decided string        // fire that is to get a task
	bytes   int           // size of its task
	backoff time.Duration // the pause of its fires if the last of them was refused for now; 0: it was not
	named   time.Time     // since when the tasks of its fires have the IDs of taskOf; zero: not known yet
}

// Kind is the origin of a fire.
type Kind string

const (
	ByTime   Kind = "schedule"
	Manual   Kind = "manual"
	Backfill Kind = "backfill"
)

// Outcome is the outcome of a fire.
type Outcome string

const (
	Created  Outcome = "CREATED"
	Skipped  Outcome = "SKIPPED" // the task of the previous fire was still running
	Refused  Outcome = "REFUSED"
	ToCreate Outcome = "" // its task is not created yet
)

// Fire is one time at which a schedule fired.
type Fire struct {
	At      time.Time
	Kind    Kind
	Outcome Outcome
	NotedAt time.Time   // zero with ToCreate
	TaskID  string      // the task that was created; with Skipped the one that was still running; with Refused empty
	State   model.State // of the task that was created; empty: it is gone
	Reason  model.Reason
	Error   string // with Refused: the code of the refusal
}

// timeOf formats a fire's time for its idempotency key.
func timeOf(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// eventTime formats a fire's time for its events, like all times of the API.
func eventTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// keyOf is the idempotency key of a fire.
func keyOf(id string, at time.Time) string { return model.FireKeyPrefix + id + ":" + timeOf(at) }

// firesHash replaces the hash of a request, so that no request with such a key is taken for a fire.
const firesHash = "schedule"

// taskOf returns the task ID of a fire. Every process derives the same one, and IDs sort by the time of the fire. No request may
// use such an ID, and the task names its schedule.
func taskOf(scope model.Scope, id string, at time.Time) string {
	return model.FireTaskPrefix + fireULID(scope, id, at)
}

// olderTaskOf returns the ID in releases without FireTaskPrefix.
func olderTaskOf(scope model.Scope, id string, at time.Time) string {
	return "task_" + fireULID(scope, id, at)
}

func fireULID(scope model.Scope, id string, at time.Time) string {
	sum := sha256.Sum256([]byte(schema.TaskName(scope, id) + "/" + strconv.FormatInt(at.UnixMilli(), 10)))
	var u ulid.ULID
	_ = u.SetTime(uint64(max(at.UnixMilli(), 0))) // fails after the year 10889
	_ = u.SetEntropy(sum[:10])                    // has the required length
	return u.String()
}

// mayBeOlder reports whether an older release may have created the task of a fire while its idempotency key is already gone.
// Releases may run concurrently for a while.
func (s *Schedule) mayBeOlder(at, now time.Time) bool {
	return now.Sub(at) >= model.IdempotencyRetention && (s.named.IsZero() || at.Before(s.named.Add(model.IdempotencyRetention)))
}
