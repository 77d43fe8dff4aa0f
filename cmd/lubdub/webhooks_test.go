package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// The error about a bad webhooks-file names what is wrong, and never contains a secret.
func TestWebhooksFile(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	news, err := readWebhooks([]byte("- id: alerts\n  url: https://example.com\n  events: [task.failed]\n  secret: " + secret +
		"\n  queue: q\n"))
	if err != nil || len(news) != 1 || news[0].Secret != secret || news[0].Settings.Filter.Queue != "q" || news[0].Scope.Tenant != "default" {
		t.Fatalf("%+v %v", news, err)
	}
	for text, want := range map[string]string{
		"id: alerts":                                              "list",
		"- url: https://example.com":                              "no valid id",
		"- id: alerts\n  url: https://example.com":                "secretFile",
		"- id: alerts\n  secert: " + secret:                       "docs/webhooks.md",
		"- id: alerts\n  secretFile: /nowhere/secret":             "secretFile",
		"- id: alerts\n  secret: " + secret + "\n  tenantId: a b": "tenantId",
	} {
		if _, err := readWebhooks([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Hosts that cannot be called when a process starts are logged, each with its webhook, and nothing else comes of it.
func TestHostsThatCannotBeCalledAreLogged(t *testing.T) {
	t.Parallel()
	var news []webhooks.NewWebhook
	for i := range 2 * concurrentLookups {
		host := []string{"good", "bad"}[i%2]
		news = append(news, webhooks.NewWebhook{ID: fmt.Sprint("w", i), Settings: webhooks.Settings{URL: "https://" + host + "/"}})
	}
	resolve := func(ctx context.Context, url string) error {
		if strings.Contains(url, "bad") {
			return errors.Join(errors.New("no such host"), ctx.Err())
		}
		return nil
	}
	var log lockedBuffer
	warnOfHosts(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), news, resolve)
	if lines := strings.Count(log.String(), "no such host"); lines != concurrentLookups || !strings.Contains(log.String(), "webhookId=w1 ") {
		t.Errorf("%d lines: %s", lines, log.String())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var after bytes.Buffer
	if warnOfHosts(ended, slog.New(slog.NewTextHandler(&after, nil)), news, resolve); after.Len() > 0 {
		t.Errorf("of a process that stops: %s", after.String())
	}
}
