package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Failures that workers report are in the answer about their own workspace, grouped by error, and are a finding that names the version
// that few workers run.
func TestContractRecentFailures(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		for n := range 6 {
			version := "1.9"
			if n == 0 {
				version = "2.0"
			}
			w := l.register(fmt.Sprintf(`{"queue":"mail","types":["x"],"version":"%s","machineId":"host-%d","maxConcurrent":10}`, version, n))
			if n > 0 {
				continue
			}
			for i := range 5 {
				l.do("POST", "/v1/tasks", l.control(roleDispatcher), fmt.Sprintf(`{"taskId":"t%d","queue":"mail","type":"x"}`, i)).want(201)
			}
			var claimed v1.ClaimResponse
			l.do("POST", "/v1/queues/mail/claim", w.WorkerToken, `{"max":10}`).want(200).into(&claimed)
			for i, task := range claimed.Tasks {
				l.do("POST", "/v1/tasks/"+task.TaskID+"/completed", task.TaskToken, fmt.Sprintf(
					`{"attempt":1,"outcome":"FAILED","error":{"category":"USER_CODE","message":"no user %d","retryable":false}}`, i)).want(200)
			}
		}
		l.wait()
		var s v1.System
		l.do("GET", "/v1/system", l.control(roleViewer), "").want(200).into(&s)
		f := s.RecentFailures
		if f.Total != 5 || f.LastFiveMinutes != 5 || f.Succeeded != 0 || f.Truncated || len(f.Groups) != 1 {
			t.Fatalf("%+v", f)
		}
		g := f.Groups[0]
		if *g.Queue != "mail" || *g.Type != "x" || g.Error != "USER_CODE no user …" || g.Count != 5 || g.LastFiveMinutes != 5 ||
			g.FirstAt.IsZero() || g.LastAt.Before(g.FirstAt.Time) || !strings.HasPrefix(g.TaskID, "t") ||
			!slices.Equal(g.Versions, []string{"2.0"}) || *g.SuspectVersion != (v1.SuspectVersion{Version: "2.0", Workers: 1, Of: 6}) {
			t.Errorf("%+v", g)
		}
		if !slices.ContainsFunc(s.Findings, func(f v1.Finding) bool {
			return f.Code == "failures" && f.Severity == v1.SeverityWarn && strings.Contains(f.Message, "5 x USER_CODE no user …") &&
				strings.Contains(f.Remedy, "ask an operator to run lubdub worker cordon --version=2.0 --queue mail")
		}) {
			t.Errorf("%+v", s.Findings)
		}
		for _, scope := range []string{"zeta", token.Wildcard} {
			l.do("GET", "/v1/system", l.controlFor(roleViewer, scope, "prod"), "").want(200).into(&s)
			if s.RecentFailures.Total != 0 || s.RecentFailures.Groups == nil {
				t.Errorf("%s: %+v", scope, s.RecentFailures)
			}
		}
	}, counts)
}
