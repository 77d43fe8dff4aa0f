package worker

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// The flags of a list of workers become one query, so that all workers that they name are one list in the order of --sort.
func TestListsOfWorkersAreOneList(t *testing.T) {
	for name, c := range map[string]struct {
		of   List
		want url.Values // without the size of a page
	}{
		"no flags": {List{}, url.Values{"status": {"ONLINE,DRAINING"}}},
		"flapping": {List{Flapping: true}, url.Values{"status": {"ONLINE,DRAINING"}, "flapping": {"true"}}},
		"most often stale": {List{Sort: "staleCount24h"},
			url.Values{"status": {"ONLINE,DRAINING"}, "sort": {"staleCount24h"}, "order": {"desc"}}},
		"least uptime":          {List{Sort: "uptimePct24h"}, url.Values{"status": {"ONLINE,DRAINING"}, "sort": {"uptimePct24h"}}},
		"longest silent":        {List{Silent: true}, url.Values{"status": {"ONLINE,DRAINING"}, "sort": {"lastHeartbeatAt"}}},
		"all":                   {List{All: true, Sort: "uptimePct24h"}, url.Values{"sort": {"uptimePct24h"}}},
		"a status and flapping": {List{Status: "offline", Flapping: true}, url.Values{"status": {"OFFLINE"}, "flapping": {"true"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var requests []url.Values
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if q := r.URL.Query(); q.Get("pageSize") != "1" { // which counts what is hidden
					q.Del("pageSize")
					requests = append(requests, q)
				}
				_, _ = io.WriteString(w, `{"workers":[{"workerId":"wkr_2","status":"DRAINING"},{"workerId":"wkr_1","status":"ONLINE"}],"totalCount":2}`)
			}))
			defer server.Close()
			var out bytes.Buffer
			c.of.Server, c.of.Output, c.of.Timeout, c.of.Limit = server.URL, "name", 10*time.Second, 100
			if err := c.of.Run(&session.Env{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard}); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(requests, []url.Values{c.want}) || out.String() != "worker/wkr_2\nworker/wkr_1\n" {
				t.Errorf("requested %v, want %v, and prints\n%s", requests, c.want, &out)
			}
		})
	}
}
