package judge

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// failing returns a group with that many failures in the last five minutes.
func failing(n int, message string) v1.FailureGroup {
	return v1.FailureGroup{Queue: text("mail"), Type: text("letter"), Error: message, Count: n, LastFiveMinutes: n, TaskID: "t1"}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// since returns a group whose first failure was this long before noon.
func since(d time.Duration, g v1.FailureGroup) v1.FailureGroup {
	g.FirstAt = v1.At(noon.Add(-d))
	return g
}

// Failures are a warning if they are many of the attempts that ended, or if one version is the likely cause.
func TestFailures(t *testing.T) {
	suspect := failing(5, "USER_CODE boom")
	suspect.SuspectVersion = &v1.SuspectVersion{Version: "2.0", Workers: 1, Of: 12}
	strange := suspect
	strange.SuspectVersion = &v1.SuspectVersion{Version: "it's; reboot", Workers: 1, Of: 12}
	viewer := Reader{}
	operator := Reader{Operates: true}
	for name, c := range map[string]struct {
		is      v1.Failures
		reader  Reader
		message string // "": there is no finding
		remedy  string
	}{
		"none":           {},
		"few":            {is: v1.Failures{LastFiveMinutes: 4, Groups: []v1.FailureGroup{failing(4, "x")}}},
		"few among many": {is: v1.Failures{LastFiveMinutes: 10, Succeeded: 91, Groups: []v1.FailureGroup{failing(10, "x")}}},
		"earlier":        {is: v1.Failures{Total: 90, Groups: []v1.FailureGroup{{Count: 90, TaskID: "t1"}}}},
		"a tenth of all": {is: v1.Failures{LastFiveMinutes: 10, Succeeded: 90, Groups: []v1.FailureGroup{failing(10, "USER_CODE x")}},
			message: "Workers reported 10 attempts as failed in the last five minutes, " +
				"and 90 tasks succeeded: 10 x USER_CODE x (queue mail, type letter).",
			remedy: "lubdub why t1"},
		"more than are listed": {is: v1.Failures{Total: 1000, Truncated: true, LastFiveMinutes: 1000, Succeeded: 50_000,
			Groups: []v1.FailureGroup{since(10*time.Second, failing(1000, "x"))}},
			message: "Workers reported at least 1000 attempts as failed in the last five minutes, and 50000 tasks succeeded",
			remedy:  "lubdub why t1"},
		"more than are listed, but few": {is: v1.Failures{Total: 1000, Truncated: true, LastFiveMinutes: 1000, Succeeded: 50_000,
			Groups: []v1.FailureGroup{since(time.Minute, failing(1000, "x"))}}},
		"all of five minutes are listed": {is: v1.Failures{Total: 1000, Truncated: true, LastFiveMinutes: 999, Succeeded: 50_000,
			Groups: []v1.FailureGroup{since(10*time.Second, failing(999, "x"))}}},
		"a version": {is: v1.Failures{LastFiveMinutes: 5, Succeeded: 900, Groups: []v1.FailureGroup{suspect}},
			reader: operator,
			message: "900 tasks succeeded: 5 x USER_CODE boom (queue mail, type letter). " +
				"All of the first group ran on version 2.0, which 1 of the 12 workers for such tasks runs",
			remedy: "lubdub why t1; if that version is the cause: " +
				"lubdub worker cordon --version=2.0 --queue mail, and roll it back"},
		"a version, to viewers": {is: v1.Failures{LastFiveMinutes: 5, Groups: []v1.FailureGroup{suspect}},
			reader:  viewer,
			message: "no task succeeded",
			remedy:  "ask an operator to run lubdub worker cordon --version=2.0 --queue mail, and roll it back"},
		"a version like a command": {is: v1.Failures{LastFiveMinutes: 5, Groups: []v1.FailureGroup{strange}},
			reader:  operator,
			message: "version it's; reboot",
			remedy:  `--version='it'\''s; reboot' --queue mail`},
		"many groups": {is: v1.Failures{LastFiveMinutes: 14, Groups: []v1.FailureGroup{
			failing(5, ""), failing(4, "b"), failing(3, "c"), failing(1, "d"), failing(1, "e"), {Count: 9}}},
			message: "5 x no error given (queue mail, type letter); 4 x b (queue mail, type letter); " +
				"3 x c (queue mail, type letter); and 2 more groups.",
			remedy: "lubdub why t1"},
	} {
		v := verdict{about: v1.Them,
			reader: c.reader}
		v.failures(&c.is, noon)
		switch {
		case c.message == "":
			if len(v.found) != 0 {
				t.Errorf("%s: %+v", name, v.found)
			}
		case len(v.found) != 1 || v.found[0].Severity != v1.SeverityWarn || v.found[0].Code != "failures":
			t.Errorf("%s: %+v", name, v.found)
		case !strings.Contains(v.found[0].Message, c.message) || !strings.Contains(v.found[0].Remedy, c.remedy):
			t.Errorf("%s: %q; %q", name, v.found[0].Message, v.found[0].Remedy)
		}
	}
}
