package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type doctorCmd struct {
	Redis  string `placeholder:"URL" help:"Check this Redis from here, as a server would use it, without any server; the other settings are those of the environment and of --config."`
	Config string `short:"c" placeholder:"FILE" help:"With --redis, or instead of it: YAML file with the server's settings (LUBDUB_CONFIG)."`
	Common `embed:""`
}

func (*doctorCmd) Help() string {
	return "Checks the way to the server, the token, the replicas, each Redis that they use and the shards, and says of each whether " +
		"it is well and what to do where it is not. With --redis it asks Redis itself, from this machine, with the settings that a server " +
		"here would have: version, policy, persistence, what its user may do, round trip, clock, scripts, and what keeps keys there. It " +
		"writes nothing. Exits with 1 when a check fails."
}

func (c *doctorCmd) Run(env *Env) error {
	if c.Redis != "" || c.Config != "" {
		all, err := env.CheckRedis(env.Context, c.Redis, c.Config)
		if err != nil {
			return err
		}
		return report(&output.Printer{W: env.Stdout, Format: c.Output, Colour: env.colourful()}, all)
	}
	s, err := c.open(env)
	if err != nil {
		return err
	}
	all, err := diagnose(env.Context, s)
	if err != nil {
		return err
	}
	return report(s.Printer, all)
}

// diagnose checks one thing after the other, each behind those that it needs. What the server can see it judges itself.
func diagnose(ctx context.Context, s *session) (all []v1.Finding, err error) {
	began := time.Now()
	running, err := s.client.ServerVersion(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	took := time.Since(began)
	all = append(all, finding("server", v1.SeverityOK, fmt.Sprintf("%s answers in %s; it is Lubdub %s.", s.where(), output.Duration(took),
		running.Version), ""), clockFinding(s), certificateFinding(s))
	health, err := health(ctx, s)
	if err != nil {
		return nil, err
	}
	all = append(all, tokenFinding(s))
	_, system, responds, err := readSystem(ctx, s)
	if err != nil {
		if code := ExitCode(err); code != ExitNotAllowed && code != ExitUnavailable {
			return nil, err
		}
		if health.Status != "ok" {
			all = append(all, notReady(health))
		}
		return append(all, finding("system", v1.SeverityFail, err.Error(),
			"with a token of role viewer, and a store that answers, the rest can be checked; lubdub doctor --redis asks the store itself")), nil
	}
	us := slices.DeleteFunc(slices.Clone(found(system)), func(f v1.Finding) bool { return f.About == v1.Them })
	if !responds {
		return append(all, us...), nil
	}
	return append(append(all, us...), finding("scripts", v1.SeverityOK,
		fmt.Sprintf("%d shards were read by scripts just now.", len(system.Shards)), "")), nil
}

// skew compares this machine's clock with the server's.
func clockFinding(s *session) v1.Finding {
	if ahead := s.clockAhead().Round(time.Second); ahead != 0 {
		return finding("clock-here", v1.SeverityWarn, fmt.Sprintf("The server's clock is %v ahead of this machine's.", ahead),
			"run NTP here; ages that the CLI shows go by the server's clock")
	}
	return finding("clock-here", v1.SeverityOK, "This machine's clock and the server's agree to a second or two.", "")
}

// certificateWarning is how long before the end of a certificate it is told; the alert of deploy/observability has the same.
const certificateWarning = 7 * 24 * time.Hour

// certificate says how the server's addresses are secured.
func certificateFinding(s *session) v1.Finding {
	ends, shown := s.certificateEnds()
	left := time.Until(ends)
	switch {
	case !shown && strings.Contains(s.server, "http://"):
		return finding("tls", v1.SeverityOK, "The connection to the server is not encrypted: "+s.server+".", "")
	case left < certificateWarning:
		return finding("tls", v1.SeverityWarn, "The server's certificate expires in "+output.Duration(left)+".",
			"replace the certificate file; it is reloaded within a second")
	}
	return finding("tls", v1.SeverityOK, "The server's certificate is valid for another "+output.Duration(left)+".", "")
}

// tokenFinding reports how long the token is still valid.
func tokenFinding(s *session) v1.Finding {
	_, claims, err := readClaims(s.token.text)
	if err != nil {
		return finding("token", v1.SeverityFail, "No token, or one that cannot be read.", s.token.next())
	}
	left := time.Unix(claims.ExpiresAt, 0).Sub(s.now())
	says := fmt.Sprintf("The token has the role %s in %s/%s and is valid for another %s.", claims.Role, claims.Tenant, claims.Workspace,
		output.Duration(left))
	switch {
	case left <= 0:
		return finding("token", v1.SeverityFail, "The token has expired.", s.token.next())
	case left < 10*time.Minute:
		return finding("token", v1.SeverityWarn, says, s.token.next())
	}
	return finding("token", v1.SeverityOK, says, "")
}
