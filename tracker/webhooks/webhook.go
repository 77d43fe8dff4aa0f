package webhooks

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// These are the codes of errors of this package.
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

// Settings are the settings that users give a webhook.
type Settings struct {
	URL         string
	Description string
	Enabled     bool
	Filter      events.Filter // Types are required; Tenant and Workspace are set to the webhook's
}

// NewWebhook describes a webhook to create.
type NewWebhook struct {
	Scope    model.Scope
	ID       string // "": generated
	Secret   string // "": generated
	Managed  bool   // it comes from the configuration
	Settings Settings
}

// Webhook is an endpoint to which events are posted.
type Webhook struct {
	Scope    model.Scope
	ID       string
	Managed  bool // only the configuration may change it
	Settings Settings

	CreatedAt, UpdatedAt time.Time
	DisabledReason       string    // GONE, FAILING or OPERATOR; "": it is enabled
	DisabledAt           time.Time // zero: it is enabled
	FailingSince         time.Time // since when every try has failed; zero: it works
	Pending              int       // deliveries that wait or are in progress
	Dead                 int       // stored deliveries that were given up
	OldSecretsUntil      time.Time // until when older secrets also sign; zero: none does
	Secret               string    // only right after it was set

	since       time.Time // it receives events since then
	bytes, most int64     // bytes of its deliveries, and their limit as collectors have last set it
}

func invalid(field, format string, args ...any) error {
	return &model.Error{Code: model.Invalid, Op: "validate", Cause: &model.FieldError{Field: field},
		Message: field + " " + fmt.Sprintf(format, args...)}
}

// validate checks settings without asking another part.
func (s *Settings) validate(scope model.Scope) error {
	f := &s.Filter
	f.Tenant, f.Workspace = scope.Tenant, scope.Workspace
	switch {
	case len(f.Types) == 0:
		return invalid("events", "is empty; list at least one event type, such as task.failed, or a family such as task.*")
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
			return invalid("events", "names %s, which belongs to no workspace, and a webhook receives events of its workspace only; read it "+
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
