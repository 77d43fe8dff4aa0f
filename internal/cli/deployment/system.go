package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// ReadSystem reads the state of the deployment. While no Redis responds, the server answers with what it knows without it; then
// responds is false.
func ReadSystem(ctx context.Context, s *session.Session) (raw json.RawMessage, is *v1.System, responds bool, err error) {
	raw, is, err = session.Get[v1.System](ctx, s, "/v1/system", nil)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusServiceUnavailable {
		without := new(v1.SystemUnavailable)
		if json.Unmarshal(refused.Body, without) == nil && len(without.Findings) > 0 {
			return refused.Body, &without.System, false, nil
		}
	}
	return raw, is, err == nil, err
}

// ReadHealth reads the server's health; an unhealthy state is not an error.
func ReadHealth(ctx context.Context, s *session.Session) (*v1.Health, error) {
	h, err := s.Client.Healthz(ctx)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusServiceUnavailable {
		return &v1.Health{Status: "unavailable", Message: exit.Refusal(refused).Error()}, nil
	}
	return h, s.Explain(err)
}
