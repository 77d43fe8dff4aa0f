package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/deployment"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// clockFinding compares the clock of this host with the server's.
func clockFinding(s *session.Session) v1.Finding {
	if ahead := s.ClockAhead().Round(time.Second); ahead != 0 {
		return deployment.NewFinding("clock-here", v1.SeverityWarn, fmt.Sprintf("The server's clock is %v ahead of this host's.", ahead),
			"run NTP here; ages that the CLI shows use the server's clock")
	}
	return deployment.NewFinding("clock-here", v1.SeverityOK, "The clocks of this host and the server agree within two seconds.", "")
}

// certificateWarning is how long before its end a certificate is a warning; the alert of deploy/observability has the same.
const certificateWarning = 7 * 24 * time.Hour

// certificateFinding reports whether the connection is encrypted, and until when the certificate is valid.
func certificateFinding(s *session.Session) v1.Finding {
	ends, shown := s.CertificateEnds()
	left := time.Until(ends)
	switch {
	case !shown && strings.Contains(s.Server, "http://"):
		return deployment.NewFinding("tls", v1.SeverityOK, "The connection to the server is not encrypted: "+s.Server+".", "")
	case left < certificateWarning:
		return deployment.NewFinding("tls", v1.SeverityWarn, "The server's certificate expires in "+output.Duration(left)+".",
			"replace the certificate file; it is reloaded within a second")
	}
	return deployment.NewFinding("tls", v1.SeverityOK, "The server's certificate is valid for another "+output.Duration(left)+".", "")
}

// tokenFinding reports how long the token is still valid.
func tokenFinding(s *session.Session) v1.Finding {
	_, claims, err := session.ReadClaims(s.Credential.Text)
	if err != nil {
		return deployment.NewFinding("token", v1.SeverityFail, "The token is missing or malformed.", s.Credential.RenewalHint())
	}
	left := time.Unix(claims.ExpiresAt, 0).Sub(s.Now())
	valid := fmt.Sprintf("The token has the role %s in %s/%s and is valid for another %s.", claims.Role, claims.Tenant, claims.Workspace,
		output.Duration(left))
	switch {
	case left <= 0:
		return deployment.NewFinding("token", v1.SeverityFail, "The token has expired.", s.Credential.RenewalHint())
	case left < 10*time.Minute:
		return deployment.NewFinding("token", v1.SeverityWarn, valid, s.Credential.RenewalHint())
	}
	return deployment.NewFinding("token", v1.SeverityOK, valid, "")
}
