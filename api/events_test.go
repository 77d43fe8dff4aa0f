package api

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// page reads a page of events.
func (l *live) page(token, query string) (list v1.EventList) {
	l.t.Helper()
	l.do("GET", "/v1/events?"+query, token, "").want(200).into(&list)
	if list.Next == "" {
		l.t.Fatal("a page without a next")
	}
	return list
}

func typesOf(list v1.EventList) (types []string) {
	for _, e := range list.Events {
		types = append(types, e.Type)
	}
	return types
}

func TestContractEvents(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		viewer := l.control(roleViewer)
		began := l.page(viewer, "").Next
		e := l.create(`{"taskId":"t1","runId":"nightly"}`)
		l.call(e, "started", seedStarted).want(200)
		l.call(e, "completed", `{"attempt":1,"outcome":"FAILED","error":{"category":"USER_CODE","message":"no"}}`).want(200)
		l.create(`{"taskId":"t2"}`)

		life := []string{"task.created", "task.dispatched", "task.started", "task.failed"}
		got := l.page(viewer, "subject=t1")
		if strings.Join(typesOf(got), " ") != strings.Join(life, " ") || got.Gap != nil {
			t.Fatalf("%+v", got)
		}
		for i, e := range got.Events {
			if e.Subject != "t1" || e.TenantID != "acme" || e.WorkspaceID != "prod" || !e.Time.Equal(l.now()) || e.RunID != "nightly" ||
				e.Attempt != 1 || !strings.HasPrefix(e.ID, "evt_") || i > 1 && e.WorkerID != "worker-abc123" {
				t.Errorf("%+v", e)
			}
		}
		if failed := got.Events[3]; failed.Cause != "WORKER_REPORTED" || !json.Valid(failed.Data) {
			t.Errorf("%+v", failed)
		}
		back := l.page(viewer, "subject=t1&order=desc&pageSize=3")
		if strings.Join(typesOf(back), " ") != "task.failed task.started task.dispatched" {
			t.Errorf("%v", typesOf(back))
		}
		if rest := l.page(viewer, "subject=t1&order=desc&after="+back.Next); strings.Join(typesOf(rest), " ") != "task.created" {
			t.Errorf("%v", typesOf(rest))
		}
		if since := l.page(viewer, "after="+began); len(since.Events) != 6 {
			t.Errorf("%v", typesOf(since))
		}
		if now := l.page(viewer, "after=now"); len(now.Events) != 0 {
			t.Errorf("%v", typesOf(now))
		}
		for query, want := range map[string]int{
			"type=task.failed": 1, "type=task.failed,task.started": 2, "type=task.failed&type=task.started": 2, "type=task.*": 6,
			"runId=nightly": 4, "workerId=worker-abc123": 2, "queue=q": 0, "taskType=x": 0, "machineId=m": 0,
		} {
			if got := l.page(viewer, query); len(got.Events) != want {
				t.Errorf("%s: %v, want %d", query, typesOf(got), want)
			}
		}
	})
}

// A token sees its scope; what has none goes to those that open every one.
func TestContractEventsOfAScope(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		l.create(`{"taskId":"t1"}`)
		l.do("POST", "/v1/tasks", l.controlFor(roleDispatcher, "acme", "dev"), `{"taskId":"t2"}`).want(201)
		l.do("POST", "/v1/tasks", l.controlFor(roleDispatcher, "other", "prod"), `{"taskId":"t3"}`).want(201)
		seen := func(tenant, workspace, query string) string {
			subjects, all := []string{}, l.page(l.controlFor(roleViewer, tenant, workspace), "order=desc&"+query)
			for _, e := range all.Events {
				if e.Type == "task.created" {
					subjects = append(subjects, e.Subject)
				}
			}
			if strings.Contains(strings.Join(typesOf(all), " "), "system.shard_started") {
				subjects = append(subjects, "system")
			}
			return strings.Join(subjects, " ")
		}
		for _, test := range []struct{ tenant, workspace, query, want string }{
			{"acme", "prod", "", "t1"}, {"acme", "dev", "", "t2"}, {"acme", "*", "", "t2 t1"}, {"acme", "*", "workspaceId=prod", "t1"},
			{"*", "*", "tenantId=other", "t3"}, {"*", "*", "tenantId=acme&workspaceId=dev", "t2"}, {"none", "prod", "", ""},
			{"*", "*", "type=task.created", "t3 t2 t1"}, {"*", "*", "type=system.*", "system"}, {"acme", "*", "type=system.*", ""},
		} {
			got := strings.Fields(seen(test.tenant, test.workspace, test.query))
			want := strings.Fields(test.want)
			for _, w := range want {
				if !strings.Contains(strings.Join(got, " "), w) || len(got) != len(want) {
					t.Errorf("%s/%s with %q sees %v, want %v", test.tenant, test.workspace, test.query, got, want)
				}
			}
			if len(want) == 0 && len(got) > 0 {
				t.Errorf("%s/%s with %q sees %v", test.tenant, test.workspace, test.query, got)
			}
		}
		l.do("GET", "/v1/events?tenantId=other", l.control(roleViewer), "").refused(403, v1.CodeForbidden)
	})
}

func TestContractEventsRefusals(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		viewer := l.control(roleViewer)
		cursor := l.page(viewer, "").Next
		for query, field := range map[string]string{
			"type=task.made": "type", "type=task.created,": "type", "type=*": "type", "type=": "type", "order=up": "order", "after=": "after",
			"pageSize=x": "pageSize", "kind=x": "kind", "after=now&after=now": "after",
		} {
			if r := l.do("GET", "/v1/events?"+query, viewer, "").refused(400, v1.CodeInvalidRequest); r.Field != field {
				t.Errorf("%s: %+v", query, r)
			}
		}
		if r := l.do("GET", "/v1/events?type=nosuch", viewer, "").refused(400, v1.CodeInvalidRequest); !contains(r.Message, "nosuch",
			"task.created, task.dispatched") {
			t.Errorf("%s", r.Message)
		}
		if r := l.do("GET", "/v1/events?subject=t1", l.controlFor(roleViewer, "*", "*"), "").refused(400, v1.CodeInvalidRequest); r.Field !=
			"subject" {
			t.Errorf("%+v", r)
		}
		l.do("GET", "/v1/events?subject=.bad", viewer, "").refused(400, v1.CodeInvalidID)
		for _, after := range []string{"x", cursor[1:], "yesterday", url.QueryEscape(cursor + "=")} {
			if r := l.do("GET", "/v1/events?after="+after, viewer, "").refused(400, v1.CodeInvalidCursor); r.Field != "after" {
				t.Errorf("%+v", r)
			}
		}
		l.do("GET", "/v1/events?order=desc&after="+cursor, viewer, "").refused(400, v1.CodeInvalidCursor)
		l.do("GET", "/v1/events?after="+url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)), viewer, "").want(200)
		l.do("GET", "/v1/events", "", "").refused(401, v1.CodeUnauthorized)
		l.do("GET", "/v1/events", l.control(roleSubmitter), "").refused(403, v1.CodeForbidden)
		l.do("HEAD", "/v1/events", viewer, "").want(200)
	})
}
