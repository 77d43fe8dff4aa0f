package deployment

import (
	"cmp"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// NewFinding returns a finding that only the client can make: about the connection, the token, the clock of this host.
func NewFinding(code string, how v1.Severity, message, remedy string) v1.Finding {
	return v1.Finding{Code: code, Severity: how, About: v1.Us, Message: message, Remedy: remedy}
}

// ServerFindings are those that the server reports.
func ServerFindings(of *v1.System) []v1.Finding {
	if of.Findings == nil {
		return []v1.Finding{NewFinding("findings", v1.SeverityFail,
			"The server is older than this command and reports no findings.",
			"upgrade the server, or use the lubdub of its version; its numbers are in -o json")}
	}
	return of.Findings
}

// NotReady is the finding about a server that reports no more than its health.
func NotReady(h *v1.Health) v1.Finding {
	return NewFinding("ready", v1.SeverityFail, "The server that answers is "+h.Status+": "+h.Message, cmp.Or(h.Next, "check its log"))
}
