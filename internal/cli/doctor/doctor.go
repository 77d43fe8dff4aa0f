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
	return "Checks the way to the server, the token, the replicas, each Redis that they use and the shards, and says of each whether " +
		"it is well and what to do where it is not. With --redis it asks Redis itself, from this machine, with the settings that a server " +
		"here would have: version, policy, persistence, what its user may do, round trip, clock, scripts, and what keeps keys there. It " +
		"writes nothing. Exits with 1 when a check fails."
}

func (c *Command) Run(env *session.Env) error {
	if c.Redis != "" || c.Config != "" {
		all, err := env.CheckRedis(env.Context, c.Redis, c.Config)
		if err != nil {
			return err
		}
		return report(&output.Printer{W: env.Stdout, Format: c.Output, Colour: env.Colourful()}, all)
	}
	s, err := c.Open(env)
	if err != nil {
		return err
	}
	all, err := diagnose(env.Context, s)
	if err != nil {
		return err
	}
	return report(s.Printer, all)
}

// diagnose checks one thing after the other, each behind those that it needs. What the server can see it reports itself.
func diagnose(ctx context.Context, s *session.Session) (all []v1.Finding, err error) {
	began := time.Now()
	running, err := s.Client.ServerVersion(ctx)
	if err != nil {
		return nil, s.Explain(err)
	}
	took := time.Since(began)
	answers := fmt.Sprintf("%s answers in %s; it is Lubdub %s.", s.Where(), output.Duration(took), running.Version)
	all = append(all, deployment.NewFinding("server", v1.SeverityOK, answers, ""), clockFinding(s), certificateFinding(s))
	health, err := deployment.ReadHealth(ctx, s)
	if err != nil {
		return nil, err
	}
	all = append(all, tokenFinding(s))
	_, system, responds, err := deployment.ReadSystem(ctx, s)
	if err != nil {
		if code := exit.Code(err); code != exit.NotAllowed && code != exit.Unavailable {
			return nil, err
		}
		if health.Status != "ok" {
			all = append(all, deployment.NotReady(health))
		}
		return append(all, deployment.NewFinding("system", v1.SeverityFail, err.Error(),
			"with a token of role viewer, and a store that answers, the rest can be checked; lubdub doctor --redis asks the store itself")), nil
	}
	us := slices.DeleteFunc(slices.Clone(deployment.ServerFindings(system)), func(f v1.Finding) bool { return f.About == v1.Them })
	if !responds {
		return append(all, us...), nil
	}
	return append(append(all, us...), deployment.NewFinding("scripts", v1.SeverityOK,
		fmt.Sprintf("%d shards were read by scripts just now.", len(system.Shards)), "")), nil
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
			severity := p.Paint(output.SeverityMoods[f.Severity], fmt.Sprintf("%-4s", f.Severity))
			fmt.Fprintf(p.W, "%s %-18s %s\n", severity, f.Code, output.Clean(f.Message))
			if f.Remedy != "" {
				fmt.Fprintf(p.W, "     %-18s -> %s\n", "", output.Clean(f.Remedy))
			}
		}
	}
	if v1.Worst(all) == v1.SeverityFail {
		return exit.ErrFailed
	}
	return nil
}
