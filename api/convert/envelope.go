package convert

import (
	"encoding/json"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Envelopes creates the envelopes of dispatched attempts.
type Envelopes struct {
	Keys      *token.Keyring
	PublicURL string // the base of their callback URLs
}

// Of returns a dispatched attempt with its token. The same attempt always gets the same envelope, but for readyAt.
func (s Envelopes) Of(e *model.Envelope) (*v1.TaskEnvelope, error) {
	t, a := e.Task, e.Attempt
	text, expires, err := httpapi.MintTask(s.Keys, a, e.TokenTTL, e.RenewToken)
	if err != nil {
		return nil, err
	}
	enqueued := a.IssuedAt
	if enqueued.IsZero() {
		enqueued = t.CreatedAt
	}
	v := &v1.TaskEnvelope{
		TaskID: t.ID, RunID: t.RunID, AssetID: OrNull(t.Asset), TaskKey: OrNull(t.Key),
		TenantID: t.Scope.Tenant, WorkspaceID: t.Scope.Workspace,
		Attempt: a.Number, State: v1.Dispatched, Resources: t.Resources,
		EnqueuedAt: v1.At(enqueued), ReadyAt: v1.At(e.ReadyAt), Deadline: v1.At(t.Deadline),
		CallbackBaseURL: s.PublicURL, TaskToken: text, TokenExpiresAt: v1.At(expires),
		HeartbeatIntervalMs: a.Interval.Milliseconds(), HeartbeatTimeoutMs: MsOrNull(a.Timeout),
		CancelGracePeriodMs: t.CancelGrace.Milliseconds(), RunTimeoutMs: t.RunTimeout.Milliseconds(),
		Type: OrNull(t.Type), Queue: OrNull(t.Queue), Labels: t.Labels, Payload: t.Payload,
		LastProgress: Progress(e.LastProgress), Traceparent: t.Trace, ScheduleID: t.ScheduleID,
	}
	if v.Resources == nil {
		v.Resources = json.RawMessage("{}")
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	return v, nil
}
