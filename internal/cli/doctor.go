package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/judge"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type doctorCmd struct {
	Common `embed:""`
}

func (*doctorCmd) Help() string {
	return "Checks the way to the server, the token, the replicas, each Redis that they use and the shards, and says of each whether " +
		"it is well and what to do where it is not. Exits with 1 when a check fails."
}

func (c *doctorCmd) Run(env *Env) error {
	s, err := c.open(env)
	if err != nil {
		return err
	}
	all, err := diagnose(env.Context, s)
	if err != nil {
		return err
	}
	if !s.Format.ForPeople() {
		raw, err := json.Marshal(map[string]any{"healthy": judge.Worst(all) != judge.Fail, "checks": all})
		if err != nil {
			return err
		}
		if err := s.Raw(raw); err != nil {
			return err
		}
	} else {
		for _, f := range all {
			fmt.Fprintf(s.W, "%s %-18s %s\n", s.Paint(levelMoods[f.Level], fmt.Sprintf("%-4s", f.Level)), f.Check, output.Clean(f.Says))
			if f.Do != "" {
				fmt.Fprintf(s.W, "     %-18s -> %s\n", "", f.Do)
			}
		}
	}
	if judge.Worst(all) == judge.Fail {
		return silent{}
	}
	return nil
}

// diagnose checks one thing after the other, each behind those that it needs.
func diagnose(ctx context.Context, s *session) (all []judge.Finding, err error) {
	began := time.Now()
	running, err := s.client.ServerVersion(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	took := time.Since(began)
	all = append(all, judge.Finding{Check: "server", Level: judge.OK, Says: fmt.Sprintf("%s answers in %s; it is Lubdub %s.", s.where(),
		output.Duration(took), running.Version)}, s.skew(), s.certificate())
	health, err := s.health(ctx)
	if err != nil {
		return nil, err
	}
	all = append(all, s.tokenFinding())
	known := judge.Known{Health: health}
	if _, known.System, err = get[v1.System](ctx, s, "/v1/system", nil); err != nil {
		if code := ExitCode(err); code != ExitNotAllowed && code != ExitUnavailable {
			return nil, err
		}
		return append(append(all, judge.Us(known)...), judge.Finding{Check: "system", Level: judge.Fail, Says: err.Error(),
			Do: "with a token of role viewer, and a store that answers, the rest can be checked"}), nil
	}
	all = append(all, judge.Us(known)...)
	all = append(all, judge.Finding{Check: "scripts", Level: judge.OK,
		Says: fmt.Sprintf("%d shards were read by scripts just now.", len(known.System.Shards))})
	return all, nil
}

// skew compares this machine's clock with the server's.
func (s *session) skew() judge.Finding {
	ahead := time.Duration(s.ahead.Load()).Round(time.Second)
	if ahead != 0 {
		return judge.Finding{Check: "clock-here", Level: judge.Warn, Says: fmt.Sprintf("The server's clock is %v ahead of this machine's.",
			ahead),
			Do: "run NTP here; ages that the CLI shows go by the server's clock"}
	}
	return judge.Finding{Check: "clock-here", Level: judge.OK, Says: "This machine's clock and the server's agree to a second or two."}
}

// certificate says how the server's addresses are secured.
func (s *session) certificate() judge.Finding {
	left := time.Until(time.Unix(s.ends.Load(), 0))
	switch {
	case s.ends.Load() == 0 && strings.Contains(s.server, "http://"):
		return judge.Finding{Check: "tls", Level: judge.OK, Says: "The way to the server is not encrypted: " + s.server + "."}
	case left < 7*24*time.Hour:
		return judge.Finding{Check: "tls", Level: judge.Warn, Says: "The server's certificate ends in " + output.Duration(left) + ".",
			Do: "put a new one where the old one is; it is read within a second"}
	}
	return judge.Finding{Check: "tls", Level: judge.OK, Says: "The server's certificate holds for another " + output.Duration(left) + "."}
}

// tokenFinding says how long the token still holds.
func (s *session) tokenFinding() judge.Finding {
	_, claims, err := readClaims(s.token.text)
	if err != nil {
		return judge.Finding{Check: "token", Level: judge.Fail, Says: "There is no token that can be read.", Do: s.token.next()}
	}
	left := time.Unix(claims.ExpiresAt, 0).Sub(s.now())
	says := fmt.Sprintf("The token has the role %s in %s/%s and holds for another %s.", claims.Role, claims.Tenant, claims.Workspace,
		output.Duration(left))
	switch {
	case left <= 0:
		return judge.Finding{Check: "token", Level: judge.Fail, Says: "The token has ended.", Do: s.token.next()}
	case left < 10*time.Minute:
		return judge.Finding{Check: "token", Level: judge.Warn, Says: says, Do: s.token.next()}
	}
	return judge.Finding{Check: "token", Level: judge.OK, Says: says}
}
