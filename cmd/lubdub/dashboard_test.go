package main

import (
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
)

// What dev prints first opens the dashboard, with a token that works, below a base path too; and envelopes carry that path.
func TestDevPrintsTheDashboardFirst(t *testing.T) {
	t.Parallel()
	r := launch(t, nil, "dev", "--no-fleet", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--base-path", "/lubdub")
	first := r.line("")
	text, ok := strings.CutPrefix(first, "dashboard ")
	at, err := url.Parse(text)
	if !ok || err != nil || at.Path != "/lubdub/ui/" {
		t.Fatalf("it begins with %q", first)
	}
	signIn, err := url.ParseQuery(at.Fragment)
	if err != nil || signIn.Get("tenantId") != "default" || signIn.Get("workspaceId") != "default" {
		t.Errorf("%v %v", signIn, err)
	}
	base := at.Scheme + "://" + at.Host + "/lubdub"
	if status, page := ask("GET", base+"/ui/", "", ""); status != http.StatusOK || !strings.Contains(page, "<!doctype html>") {
		t.Errorf("%d %s", status, page)
	}
	status, envelope := ask("POST", base+"/v1/tasks?tenantId=default&workspaceId=default", signIn.Get("token"), "{}")
	if status != http.StatusCreated || !strings.Contains(envelope, `"callbackBaseUrl":"`+base+`"`) {
		t.Errorf("%d %s", status, envelope)
	}
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != exitOK {
		t.Errorf("it ended with %d: %s", code, r.errs)
	}
}
