package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/contextcmd"
	"github.com/lubdub-io/lubdub/internal/cli/event"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/cli/task"
	"github.com/lubdub-io/lubdub/internal/cli/token"
	"github.com/lubdub-io/lubdub/internal/cli/why"
)

// Pages of events are short, or empty, where a filter passes over many: matching events may be on a later page.
func TestEventsAreLookedForBehindEmptyPages(t *testing.T) {
	pages := map[string]string{
		"":  `{"events":[],"next":"a"}`,
		"a": `{"events":[%s],"next":"b"}`,
		"b": `{"events":[],"next":"b"}`,
	}
	registered := `{"id":"evt_1","type":"worker.registered","time":"2025-01-01T00:00:00.000Z","subject":"wkr_1","workerId":"wkr_1","data":{}}`
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		answer := map[string]string{
			"/v1/events":        strings.Replace(pages[r.URL.Query().Get("after")], "%s", registered, 1),
			"/v1/tasks":         `{"tasks":[],"totalCount":0}`,
			"/v1/workers/wkr_1": `{"workerId":"wkr_1","status":"ONLINE"}`,
		}[r.URL.Path]
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	list, explain := &event.List{Limit: 100}, &why.Worker{Worker: "wkr_1"}
	list.Server, list.Timeout, list.Output = server.URL, 10*time.Second, "table"
	explain.Flags = list.Flags
	for i, cmd := range []interface{ Run(*session.Env) error }{list, explain} {
		var out, errs bytes.Buffer
		requests = 0
		err := cmd.Run(&session.Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
		if err != nil || !strings.Contains(out.String(), "worker.registered") || errs.Len() > 0 || requests != 3+3*i { // why counts tasks, too
			t.Error(fmt.Sprintf("%d requests: %v\n", requests, err) + out.String() + errs.String())
		}
	}
}

// A command that waits for input ends with one Ctrl-C.
func TestReadingStandardInputEndsWithTheCommand(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	silent, keyboard := io.Pipe()
	t.Cleanup(func() { _ = keyboard.Close() })
	dash, server := "-", "http://127.0.0.1:1"
	create := &task.Create{File: dash}
	create.Server, create.Timeout = server, time.Second
	for name, cmd := range map[string]interface{ Run(*session.Env) error }{
		"context set": &contextcmd.Set{Name: "c", Server: &server, Token: &dash}, "token inspect": &token.Inspect{Stdin: true},
		"task create": create,
	} {
		ended := make(chan error, 1)
		env := &session.Env{Context: ctx, Stdin: silent, Stdout: io.Discard, Stderr: io.Discard,
			Environ: []string{"XDG_CONFIG_HOME=" + t.TempDir()}}
		go func() { ended <- cmd.Run(env) }()
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s waits on", name)
		}
	}
}
