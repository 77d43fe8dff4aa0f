// Package doctor checks the way to a deployment and what it reports, with remedies.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/deployment"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type Command struct {
	Redis         string `placeholder:"URL" help:"Check this Redis from here, as a server would use it, without any server; the other settings are those of the environment and of --config."`
	Config        string `short:"c" placeholder:"FILE" help:"With --redis, or instead of it: YAML file with the server's settings (LUBDUB_CONFIG)."`
	session.Flags `embed:""`
}

func (*Command) Help() string {
	return "Checks the connection to the server, the token, the replicas, each Redis that they use and the shards, and prints for each " +
		"what is wrong and what to do. With --redis it checks Redis directly, from this host, with the settings that a server here would " +
		"have: version, policy, persistence, permissions of its user, round trip, clock, scripts, and which deployment keeps its data " +
		"there. It writes nothing. Exits with 1 when a check fails, and with 5 when the server or its Redis does not respond."
}

func (c *Command) Run(env *session.Env) error {
	if c.Redis != "" || c.Config != "" {
		all, err := env.CheckRedis(env.Context, c.Redis, c.Config)
		if err != nil {
			return err
		}
		return report(&output.Printer{W: env.Stdout, Format: c.Output, Colour: env.Colourful()}, all, exit.ErrFailed)
	}
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	all, responds, err := diagnose(env.Context, s)
	if err != nil {
		return err
	}
	if !responds {
		return report(s.Printer, all, exit.ErrUnavailable)
	}
	return report(s.Printer, all, exit.ErrFailed)
}

// diagnose checks the connection step by step, and adds what the server reports. responds is false if the server's Redis does not
// respond.
func diagnose(ctx context.Context, s *session.Session) (all []v1.Finding, responds bool, err error) {
	began := time.Now()
	running, err := s.Client.ServerVersion(ctx)
	if err != nil {
		return nil, false, s.Explain(err)
	}
	took := time.Since(began)
	answers := fmt.Sprintf("%s answers in %s; it is Lubdub %s.", s.Where(), output.Duration(took), running.Version)
	all = append(all, deployment.NewFinding("server", v1.SeverityOK, answers, ""), clockFinding(s), certificateFinding(s))
	health, err := deployment.ReadHealth(ctx, s)
	if err != nil {
		return nil, false, err
	}
	all = append(all, tokenFinding(s))
	_, system, responds, err := deployment.ReadSystem(ctx, s)
	if err != nil {
		code := exit.Code(err)
		if code != exit.NotAllowed && code != exit.Unavailable {
			return nil, false, err
		}
		if health.Status != "ok" {
			all = append(all, deployment.NotReady(health))
		}
		return append(all, deployment.NewFinding("system", v1.SeverityFail, err.Error(),
				"the rest needs a token with the role viewer and a Redis that responds; lubdub doctor --redis checks Redis directly")),
			code == exit.NotAllowed, nil
	}
	ours := slices.DeleteFunc(slices.Clone(deployment.ServerFindings(system)), func(f v1.Finding) bool { return f.About == v1.Them })
	if !responds {
		return append(all, ours...), false, nil
	}
	return append(append(all, ours...), deployment.NewFinding("scripts", v1.SeverityOK,
		fmt.Sprintf("Scripts run: %s were read just now.", output.Count(len(system.Shards), "shard")), "")), true, nil
}

// report writes findings one by one, each with its remedy. If one fails, it returns the error that failed is.
func report(p *output.Printer, all []v1.Finding, failed error) error {
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
			severity := p.Paint(output.SeverityMoods[f.Severity], fmt.Sprintf("%-4s", f.Severity))
			fmt.Fprintf(p.W, "%s %-18s %s\n", severity, f.Code, output.Clean(f.Message))
			if f.Remedy != "" {
				fmt.Fprintf(p.W, "     %-18s -> %s\n", "", output.Clean(f.Remedy))
			}
		}
	}
	if v1.Worst(all) == v1.SeverityFail {
		return failed
	}
	return nil
}
