package task

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// triesOfACall is how often a session makes a call.
const triesOfACall = 2

// A wait notes once that the server does not answer, and continues to wait.
func TestAWaitReportsThatNoServerAnswers(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests <= 2*triesOfACall {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":"store_unavailable","message":"come again"}`)
			return
		}
		_, _ = io.WriteString(w, `{"runId":"r","counts":{"SUCCEEDED":1},"totalCount":1}`)
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	cmd := &RunWait{ID: "r"}
	cmd.Server, cmd.Output, cmd.Timeout = server.URL, "table", 10*time.Second
	if err := cmd.Run(&session.Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}); err != nil {
		t.Fatal(err)
	}
	if warnings := strings.Count(errs.String(), "come again; still trying"); warnings != 1 {
		t.Errorf("%d warnings:\n%s", warnings, errs.String())
	}
}
