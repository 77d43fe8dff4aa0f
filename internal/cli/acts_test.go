package cli

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

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// An act on many that is cut short says how far it came, and that the same command goes on.
func TestAnActThatIsCutShortSaysHowFarItCame(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		says string
		cut  func(w http.ResponseWriter, r *http.Request, interrupt func())
	}{
		"by Ctrl-C": {ExitFailed, "interrupted", func(_ http.ResponseWriter, r *http.Request, interrupt func()) {
			interrupt()
			<-r.Context().Done()
		}},
		"by a store that is gone": {ExitUnavailable, "come again", func(w http.ResponseWriter, _ *http.Request, _ func()) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":"store_unavailable","message":"come again"}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked v1.CancelTasksRequest
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Selector.Queue != "mail" {
					t.Errorf("%v: %+v", err, asked)
				}
				switch {
				case asked.DryRun:
					_, _ = io.WriteString(w, `{"matched":3000,"done":0,"refused":{}}`)
				case asked.PageToken == "":
					_, _ = io.WriteString(w, `{"matched":1000,"done":1000,"refused":{},"nextPageToken":"more"}`)
				default:
					c.cut(w, r, interrupt)
				}
			}))
			defer server.Close()
			var out, errs bytes.Buffer
			cmd := &taskCancel{}
			cmd.Queue, cmd.Yes, cmd.Server, cmd.Output, cmd.Timeout = "mail", true, server.URL, "table", 10*time.Second
			err := cmd.Run(&Env{Context: ctx, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
			if ExitCode(err) != c.code || out.Len() > 0 {
				t.Errorf("%d: %v\n%s", ExitCode(err), err, out.String())
			}
			for _, part := range []string{c.says, "1,000 tasks done so far; the same command goes on with the rest"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if !strings.Contains(errs.String(), "1,000 of 3,000") {
				t.Errorf("%q", errs.String())
			}
		})
	}
}

// Whoever is asked and does not say yes has done nothing.
func TestAYesIsAYes(t *testing.T) {
	pipe := &session{env: &Env{Context: t.Context(), Stdin: strings.NewReader("y\n"), Stderr: io.Discard}}
	if err := pipe.agreed(Acting{}, "end it"); ExitCode(err) != ExitMisuse {
		t.Errorf("what is no terminal was asked: %v", err)
	}
	if err := (&session{}).agreed(Acting{Yes: true}, "end it"); err != nil {
		t.Error(err)
	}
}

// triesOfACall is how often a session makes a call.
const triesOfACall = 2

// Whoever waits is told that nobody answers, once, and waits on.
func TestAWaitTellsThatNobodyAnswers(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked <= 2*triesOfACall {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":"store_unavailable","message":"come again"}`)
			return
		}
		_, _ = io.WriteString(w, `{"runId":"r","counts":{"SUCCEEDED":1},"totalCount":1}`)
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	cmd := &runWait{ID: "r"}
	cmd.Server, cmd.Output, cmd.Timeout = server.URL, "table", 10*time.Second
	if err := cmd.Run(&Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}); err != nil {
		t.Fatal(err)
	}
	if told := strings.Count(errs.String(), "come again; still trying"); told != 1 {
		t.Errorf("told %d times:\n%s", told, errs.String())
	}
}

// All that happened since a time is sent again, however many calls it takes, and what is not kept any more is told.
func TestRedeliveringGoesThroughAllParts(t *testing.T) {
	var asked []v1.RedeliverRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body v1.RedeliverRequest
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answer := `{"queued":5}`
		if asked = append(asked, body); len(asked) == 1 {
			answer = `{"queued":1000,"nextPageToken":"more",` +
				`"gap":{"from":"2025-01-01T00:00:00.000Z","to":"2025-01-02T00:00:00.000Z","shards":[0]}}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	cmd := &webhookRedeliver{ID: "w", Since: "1h"}
	cmd.Server, cmd.Output, cmd.Timeout = server.URL, "json", 10*time.Second
	if err := cmd.Run(&Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 || asked[0].Since.IsZero() || asked[1] != (v1.RedeliverRequest{PageToken: "more"}) {
		t.Errorf("a call says one thing: %+v", asked)
	}
	if !strings.Contains(out.String(), `"queued": 1005`) ||
		!strings.Contains(errs.String(), "2025-01-02T00:00:00.000Z are not kept any more") {
		t.Errorf("%s\n%s", out.String(), errs.String())
	}
}
