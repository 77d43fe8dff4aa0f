package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// finding is one of what only this end of the line can see: the way to the server, the token, this machine's clock.
func finding(code string, how v1.Severity, message, remedy string) v1.Finding {
	return v1.Finding{Code: code, Severity: how, About: v1.Us, Message: message, Remedy: remedy}
}

// found is what the server finds.
func found(of *v1.System) []v1.Finding {
	if of.Findings == nil {
		return []v1.Finding{finding("findings", v1.SeverityFail,
			"The server is older than this command: it tells its numbers, and not what they mean.",
			"update the server, or use the lubdub of its version; the numbers stand in -o json")}
	}
	return of.Findings
}

// system asks how the deployment is. While no Redis responds the server answers what it knows without it, which is an answer too: then
// responds is false.
func readSystem(ctx context.Context, s *session) (raw json.RawMessage, is *v1.System, responds bool, err error) {
	raw, is, err = get[v1.System](ctx, s, "/v1/system", nil)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable {
		without := new(v1.SystemUnavailable)
		if json.Unmarshal(refused.Body, without) == nil && len(without.Findings) > 0 {
			return refused.Body, &without.System, false, nil
		}
	}
	return raw, is, err == nil, err
}

// notReady is what a server says of itself that cannot say more.
func notReady(h *v1.Health) v1.Finding {
	return finding("ready", v1.SeverityFail, "The server that answers is "+h.Status+": "+h.Message, cmp.Or(h.Next, "see its log"))
}

// report writes findings one by one, each with its remedy. It fails where one does.
func report(p *output.Printer, all []v1.Finding) error {
	if !p.Format.ForPeople() {
		raw, err := json.Marshal(map[string]any{"healthy": v1.Worst(all) != v1.SeverityFail, "checks": all})
		if err != nil {
			return err
		}
		if err := p.Raw(raw); err != nil {
			return err
		}
	} else {
		for _, f := range all {
			fmt.Fprintf(p.W, "%s %-18s %s\n", p.Paint(output.SeverityMoods[f.Severity], fmt.Sprintf("%-4s", f.Severity)), f.Code, output.Clean(f.Message))
			if f.Remedy != "" {
				fmt.Fprintf(p.W, "     %-18s -> %s\n", "", output.Clean(f.Remedy))
			}
		}
	}
	if v1.Worst(all) == v1.SeverityFail {
		return errFailed
	}
	return nil
}
