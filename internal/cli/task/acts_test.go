package task

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// An interrupted bulk operation reports how far it came, and that the same command continues it.
func TestAnInterruptedActReportsItsProgress(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		want string
		cut  func(w http.ResponseWriter, r *http.Request, interrupt func())
	}{
		"by Ctrl-C": {exit.Failed, "interrupted", func(_ http.ResponseWriter, r *http.Request, interrupt func()) {
			interrupt()
			<-r.Context().Done()
		}},
		"by a store that is gone": {exit.Unavailable, "come again", func(w http.ResponseWriter, _ *http.Request, _ func()) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":"store_unavailable","message":"come again"}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var request v1.CancelTasksRequest
				if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Selector.Queue != "mail" {
					t.Errorf("%v: %+v", err, request)
				}
				switch {
				case request.DryRun:
					_, _ = io.WriteString(w, `{"matched":3000,"done":0,"refused":{}}`)
				case request.PageToken == "":
					_, _ = io.WriteString(w, `{"matched":1000,"done":1000,"refused":{},"nextPageToken":"more"}`)
				default:
					c.cut(w, r, interrupt)
				}
			}))
			defer server.Close()
			var out, errs bytes.Buffer
			cmd := &Cancel{}
			cmd.Queue, cmd.Yes, cmd.Server, cmd.Output, cmd.Timeout = "mail", true, server.URL, "table", 10*time.Second
			err := cmd.Run(&session.Env{Context: ctx, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
			if exit.Code(err) != c.code || out.Len() > 0 {
				t.Errorf("%d: %v\n%s", exit.Code(err), err, out.String())
			}
			for _, part := range []string{c.want, "1,000 tasks done so far; run the same command again to continue"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
			if !strings.Contains(errs.String(), "1,000 of 3,000") {
				t.Errorf("%q", errs.String())
			}
		})
	}
}
