package main

import (
	"strings"
	"testing"
)

// A bad webhooks-file says what is wrong, and never what a secret is.
func TestWebhooksFile(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	news, err := readWebhooks([]byte("- id: alerts\n  url: https://example.com\n  events: [task.failed]\n  secret: " + secret +
		"\n  queue: q\n"))
	if err != nil || len(news) != 1 || news[0].Secret != secret || news[0].Settings.Filter.Queue != "q" || news[0].Scope.Tenant != "default" {
		t.Fatalf("%+v %v", news, err)
	}
	for text, says := range map[string]string{
		"id: alerts":                                              "list",
		"- url: https://example.com":                              "no valid id",
		"- id: alerts\n  url: https://example.com":                "secretFile",
		"- id: alerts\n  secert: " + secret:                       "docs/webhooks.md",
		"- id: alerts\n  secretFile: /nowhere/secret":             "secretFile",
		"- id: alerts\n  secret: " + secret + "\n  tenantId: a b": "tenantId",
	} {
		if _, err := readWebhooks([]byte(text)); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}
