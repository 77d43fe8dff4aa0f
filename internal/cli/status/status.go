// Package status shows on one screen how a deployment is and what to do.
package status

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/lubdub-io/lubdub/internal/cli/deployment"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/resource"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type Command struct {
	session.Flags `embed:""`
}

func (*Command) Help() string {
	return "Shows silent workers, findings about Lubdub and about your workers, what was lost in the last hour, and what to do. " +
		"Exits with 0 when nothing fails (warnings do not count), with 1 on a failure, and with 5 when the server or its Redis does not respond."
}

func (c *Command) Run(env *session.Env) error {
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	st, err := deployment.Read(env.Context, s)
	if err != nil {
		return err
	}
	all := st.Findings()
	if s.Format.ForPeople() {
		failed, err := failedTasks(env.Context, s, st)
		if err != nil {
			return err
		}
		show(s, st, all, failed)
	} else if err := writeAnswer(s, st, all); err != nil {
		return err
	}
	switch {
	case !st.Responds || st.Unread != nil:
		return exit.ErrUnavailable
	case v1.Worst(all) == v1.SeverityFail:
		return exit.ErrFailed
	}
	return nil
}

// failedTasks reads the newest failed task and how many there are, if attempts were ended in the last hour.
func failedTasks(ctx context.Context, s *session.Session, st *deployment.State) (*resource.Page[v1.Task], error) {
	if st.Verdicts == nil || st.Verdicts.Total == 0 || st.Stats == nil || st.Stats.Tasks[string(v1.Failed)] == 0 {
		return &resource.Page[v1.Task]{}, nil
	}
	p, err := resource.Tasks.ReadPage(ctx, s, url.Values{"state": {"FAILED"}, "order": {"desc"}, "pageSize": {"1"}})
	if exit.Code(err) == exit.Unavailable {
		return &resource.Page[v1.Task]{}, nil
	}
	return p, err
}

// writeAnswer writes the answer for programs: the findings, and the API's own answers that they come from.
func writeAnswer(s *session.Session, st *deployment.State, all []v1.Finding) error {
	if s.Format == output.Name {
		_, err := fmt.Fprintln(s.W, v1.Worst(all))
		return err
	}
	silent := []json.RawMessage{}
	for _, e := range st.Silent {
		silent = append(silent, e.Raw)
	}
	answer := map[string]any{
		"healthy": v1.Worst(all) != v1.SeverityFail, "findings": all, "silent": silent, "health": st.Health,
	}
	for name, raw := range st.Raw {
		answer[name] = raw
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return s.Raw(raw)
}
