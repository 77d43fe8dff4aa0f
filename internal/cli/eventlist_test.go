package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Pages of events are short, or empty, where a filter passes over many: what is asked for may stand behind them.
func TestEventsAreLookedForBehindEmptyPages(t *testing.T) {
	pages := map[string]string{
		"":  `{"events":[],"next":"a"}`,
		"a": `{"events":[%s],"next":"b"}`,
		"b": `{"events":[],"next":"b"}`,
	}
	event := `{"id":"evt_1","type":"worker.registered","time":"2025-01-01T00:00:00.000Z","subject":"wkr_1","workerId":"wkr_1","data":{}}`
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		answer := map[string]string{
			"/v1/events":        strings.Replace(pages[r.URL.Query().Get("after")], "%s", event, 1),
			"/v1/tasks":         `{"tasks":[],"totalCount":0}`,
			"/v1/workers/wkr_1": `{"workerId":"wkr_1","status":"ONLINE"}`,
		}[r.URL.Path]
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	list, tell := &eventLs{Limit: 100}, &workerWhy{Worker: "wkr_1"}
	list.Server, list.Timeout, list.Output = server.URL, 10*time.Second, "table"
	tell.Common = list.Common
	for i, cmd := range []interface{ Run(*Env) error }{list, tell} {
		var out, errs bytes.Buffer
		asked = 0
		err := cmd.Run(&Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
		if err != nil || !strings.Contains(out.String(), "worker.registered") || errs.Len() > 0 || asked != 3+3*i { // why counts tasks, too
			t.Error(fmt.Sprintf("asked %d times: %v\n", asked, err) + out.String() + errs.String())
		}
	}
}
