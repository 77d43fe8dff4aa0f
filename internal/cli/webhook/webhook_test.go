package webhook

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// All events since a time are sent again, however many calls that takes, and events that are no longer kept are reported.
func TestRedeliveringGoesThroughAllParts(t *testing.T) {
	var requests []v1.RedeliverRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body v1.RedeliverRequest
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answer := `{"queued":5}`
		if requests = append(requests, body); len(requests) == 1 {
			answer = `{"queued":1000,"nextPageToken":"more",` +
				`"gap":{"from":"2025-01-01T00:00:00.000Z","to":"2025-01-02T00:00:00.000Z","shards":[0]}}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	cmd := &Redeliver{ID: "w", Since: "1h"}
	cmd.Server, cmd.Output, cmd.Timeout = server.URL, "json", 10*time.Second
	if err := cmd.Run(&session.Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}); err != nil {
		t.Fatal(err)
	}
	if len(requests) != 2 || requests[0].Since.IsZero() || requests[1] != (v1.RedeliverRequest{PageToken: "more"}) {
		t.Errorf("a call has more than one condition: %+v", requests)
	}
	if !strings.Contains(out.String(), `"queued": 1005`) ||
		!strings.Contains(errs.String(), "2025-01-02T00:00:00.000Z are not kept any more") {
		t.Errorf("%s\n%s", out.String(), errs.String())
	}
}
