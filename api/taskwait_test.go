package api

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A request that waits for a task is answered with its result when it ends, and takes no place of the control plane meanwhile.
func TestContractWaitForTasks(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		w := l.worker("w")
		viewer := l.control(roleViewer)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"t1","queue":"q","type":"x"}`).want(201)
		l.do("POST", "/v1/tasks", l.control(roleDispatcher), `{"taskId":"t2","queue":"q","type":"y"}`).want(201)
		var claimed v1.ClaimResponse
		l.do("POST", "/v1/queues/q/claim", w.WorkerToken, `{"start":true}`).want(200).into(&claimed)
		one, many := make(chan *answer, 1), make(chan *answer, 1)
		go func() { one <- l.do("GET", "/v1/tasks/t1?waitMs=60000", viewer, "") }()
		go func() { many <- l.do("POST", "/v1/tasks:wait", viewer, `{"taskIds":["t2","t1"],"waitMs":60000}`) }()
		until(t, func() bool { return l.s.api.Waits.Len() == 2 && l.s.tasks.Awaited.Used() == 3 }, func() string { return "they do not wait" })
		if n := l.s.api.Control.Places.Used(); n != 0 {
			t.Errorf("requests that wait take %d places of the control plane", n)
		}
		l.do("POST", "/v1/tasks/t1/completed", claimed.Tasks[0].TaskToken, `{"attempt":1,"outcome":"SUCCEEDED","output":{"n":7}}`).want(200)
		(<-one).want(200).contains(`{"taskId":"t1","state":"SUCCEEDED","output":{"n":7}}`)
		var ended v1.WaitTasksResponse
		(<-many).want(200).into(&ended)
		if len(ended.Tasks) != 1 || ended.Tasks[0].TaskID != "t1" || string(ended.Tasks[0].Output) != `{"n":7}` || len(ended.NotFound) != 0 {
			t.Errorf("%+v", ended)
		}
		if n := l.s.tasks.Awaited.Used(); n != 0 {
			t.Errorf("%d tasks are still awaited", n)
		}
		l.do("POST", "/v1/tasks:wait", viewer, `{"taskIds":["t2"]}`).want(200).contains(`{"tasks":[],"notFound":[]}`)
		l.do("POST", "/v1/tasks:wait", viewer, `{"taskIds":["t2","none"],"waitMs":60000}`).want(200).contains(`{"tasks":[],"notFound":["none"]}`)
		l.do("GET", "/v1/tasks/t2?waitMs=1", viewer, "").want(200).contains(`{"state":"QUEUED"}`)
		l.do("GET", "/v1/tasks/none?waitMs=60000", viewer, "").refused(404, v1.CodeTaskNotFound)
	})
}

func TestWaitForTasksRefusesBadInput(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	viewer := e.control(roleViewer)
	long := strings.TrimSuffix(strings.Repeat(`"t",`, 1001), ",")
	for body, field := range map[string]string{
		`{}`:                                  "taskIds",
		`{"taskIds":[]}`:                      "taskIds",
		`{"taskIds":[` + long + `]}`:          "taskIds",
		`{"taskIds":["a/b"]}`:                 "taskIds[0]",
		`{"taskIds":["a","b","a"]}`:           "taskIds[2]",
		`{"taskIds":["a"],"waitMs":-1}`:       "waitMs",
		`{"taskIds":["a"],"waitMs":60001}`:    "waitMs",
		`{"taskIds":["a"],"waitMs":1,"to":1}`: "to",
	} {
		a := e.do("POST", "/v1/tasks:wait", viewer, body).want(400)
		var r v1.Error
		if a.into(&r); r.Field != field || r.Message == "" {
			t.Errorf("%.60s: %s", body, a.body)
		}
	}
	for _, wait := range []string{"-1", "60001", "1.5", "soon", ""} {
		a := e.do("GET", fmt.Sprintf("/v1/tasks/t?waitMs=%s", wait), viewer, "").want(400)
		var r v1.Error
		if a.into(&r); r.Field != "waitMs" || r.Message == "" {
			t.Errorf("%q: %s", wait, a.body)
		}
	}
}
