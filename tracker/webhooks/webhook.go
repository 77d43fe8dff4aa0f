package webhooks

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Codes of what this room refuses.
const (
	NotFound         model.Code = "webhook_not_found"
	Exists           model.Code = "webhook_exists"
	Managed          model.Code = "webhook_managed"
	Disabled         model.Code = "webhook_disabled"
	DeliveryNotFound model.Code = "delivery_not_found"
)

const (
	maxTypes       = 100
	maxDescription = 256
)

// Settings are what users say of a webhook.
type Settings struct {
	URL         string
	Description string
	Enabled     bool
	Filter      events.Filter // Types must be given; Tenant and Workspace are the webhook's own
}

// NewWebhook asks for one.
type NewWebhook struct {
	Scope    model.Scope
	ID       string // "": one is made
	Secret   string // "": one is made
	Managed  bool   // by configuration
	Settings Settings
}

// Webhook is where events are posted to.
type Webhook struct {
	Scope    model.Scope
	ID       string
	Managed  bool // by configuration, and not to be changed otherwise
	Settings Settings

	CreatedAt, UpdatedAt time.Time
	DisabledReason       string    // GONE, FAILING or OPERATOR; "": it is on
	DisabledAt           time.Time // zero: it is on
	FailingSince         time.Time // since when nothing was delivered though it was tried; zero: it works
	Pending              int       // deliveries that wait, or are under way
	Dead                 int       // deliveries that were given up, of those that are kept
	OldSecretsUntil      time.Time // until when secrets sign beside the newest; zero: none does
	Secret               string    // only where it was just made

	since       time.Time // it is told of what has happened since
	bytes, most int64     // that its deliveries take, and may take as collectors have said last
}

func invalid(field, format string, args ...any) error {
	return &model.Error{Code: model.Invalid, Op: "validate", Cause: &model.FieldError{Field: field},
		Message: field + " " + fmt.Sprintf(format, args...)}
}

// validate checks what can be judged without asking anybody.
func (s *Settings) validate(scope model.Scope) error {
	f := &s.Filter
	f.Tenant, f.Workspace = scope.Tenant, scope.Workspace
	switch {
	case len(f.Types) == 0:
		return invalid("events", "names no types of events; name at least one, such as task.failed, or a family such as task.*")
	case len(f.Types) > maxTypes:
		return invalid("events", "names %d types; use at most %d, or families such as task.*", len(f.Types), maxTypes)
	case len(s.Description) > maxDescription || !utf8.ValidString(s.Description):
		return invalid("description", "is longer than %d bytes, or no UTF-8; shorten it", maxDescription)
	}
	if err := model.CheckEventTypes("events", f.Types); err != nil {
		return err
	}
	for _, kind := range f.Types {
		if slices.Contains(model.WithoutScope, kind) {
			return invalid("events", "names %s, which belongs to no workspace, and a webhook is told of its own workspace only; read it "+
				"from GET /v1/events with a token of tenant * and workspace *", kind)
		}
	}
	for _, id := range [...]struct{ field, value string }{
		{"subject", f.Subject}, {"runId", f.RunID}, {"queue", f.Queue}, {"taskType", f.TaskType}, {"workerId", f.WorkerID},
		{"machineId", f.MachineID},
	} {
		if id.value != "" && !model.ValidID(id.value) {
			return &model.Error{Code: model.InvalidID, Op: "validate", Cause: &model.FieldError{Field: id.field}, Message: id.field +
				" is not a valid id; use 1 to 128 letters, digits, dots, underscores and hyphens, beginning with a letter or digit"}
		}
	}
	return nil
}
