package api

import (
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// The most relevant entry is first: the newest failure is on the first page, whatever has ended meanwhile.
func TestContractListsHaveAnOrder(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		began := l.now()
		for _, id := range []string{"t3", "t1", "t2"} {
			e := l.create(`{"taskId":"` + id + `"}`)
			l.call(e, "started", `{"attempt":1}`).want(200)
			l.call(e, "completed", `{"attempt":1,"outcome":"FAILED","error":{"category":"USER_CODE","message":"x"}}`).want(200)
			l.pass(time.Second)
		}
		pages := func(query string) (ids string) {
			var page v1.TaskList
			for token := ""; ; token = "&pageToken=" + page.NextPageToken {
				page = v1.TaskList{}
				l.do("GET", "/v1/tasks?pageSize=2&"+query+token, l.control(roleViewer), "").want(200).into(&page)
				for _, task := range page.Tasks {
					ids += " " + task.TaskID
				}
				if page.NextPageToken == "" {
					return strings.TrimSpace(ids)
				}
			}
		}
		at := func(d time.Duration) string { return url.QueryEscape(v1.At(began.Add(d)).Format(v1.TimeLayout)) }
		for query, want := range map[string]string{
			"order=desc":                                                          "t3 t2 t1",
			"state=FAILED,RUNNING&order=asc":                                      "t1 t2 t3",
			"finishedAfter=" + at(0):                                              "t3 t1 t2",
			"finishedAfter=" + at(0) + "&order=desc":                              "t2 t1 t3",
			"finishedBefore=" + at(time.Second):                                   "t3",
			"reason=WORKER_REPORTED&order=desc":                                   "t3 t2 t1",
			"reason=WORKER_LOST&state=FAILED":                                     "",
			"finishedAfter=" + at(time.Second) + "&reason=WORKER_REPORTED&type=x": "",
		} {
			if got := pages(query); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		w := l.register(`{"queue":"default","types":["x"],"name":"mailer","version":"1.2"}`)
		l.register(`{"queue":"default","types":["x"],"name":"other"}`)
		var workers v1.WorkerList
		l.do("GET", "/v1/workers?name=mailer&version=1.2&sort=lastHeartbeat&order=desc", l.control(roleViewer), "").want(200).into(&workers)
		if len(workers.Workers) != 1 || workers.TotalCount != 1 || workers.Workers[0].WorkerID != w.WorkerID ||
			workers.Workers[0].LastHeartbeatAgeMs == nil {
			t.Errorf("%+v", workers)
		}
		for path, field := range map[string]string{"/v1/workers?sort=name": "sort", "/v1/workers?name=": "name", "/v1/machines?order=up": "order",
			"/v1/queues?order=down": "order"} {
			if e := l.do("GET", path, l.control(roleViewer), "").refused(400, v1.CodeInvalidRequest); e.Field != field {
				t.Errorf("%s: field %q", path, e.Field)
			}
		}
	})
}
