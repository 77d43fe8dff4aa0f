package api

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// A call that waits ends when its client has gone, if an event loop watches the connection: a task that becomes ready later is not given to
// a worker that has been killed. A client that has only shut its side gets an answer.
func TestAWaitingCallEndsWithItsClient(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, l *live) {
		addr, w := l.listen(), l.worker("w")
		viewer, dispatcher := l.control(roleViewer), l.control(roleDispatcher)
		l.do("POST", "/v1/tasks", dispatcher, `{"taskId":"other","queue":"elsewhere"}`).want(201)
		for name, c := range map[string]struct {
			path, bearer, body string
			status             int // for a client that has only shut its side
		}{
			"claim":    {"/v1/queues/q/claim", w.WorkerToken, `{"waitMs":60000}`, 200},
			"exchange": {"/v1/workers/" + w.WorkerID + "/exchange", w.WorkerToken, `{"seq":1,"claim":{"waitMs":60000,"claimId":"c1"}}`, 200},
			"wait":     {"/v1/tasks:wait", viewer, `{"taskIds":["other"],"waitMs":60000}`, 503},
			"get":      {"/v1/tasks/other?waitMs=60000", viewer, "", 503},
		} {
			method := "POST"
			if c.body == "" {
				method = "GET"
			}
			request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
				"Content-Length: %d\r\n\r\n%s", method, c.path, c.bearer, len(c.body), c.body)
			for _, half := range []bool{false, true} {
				client := dialTo(t, addr)
				if _, err := client.Write([]byte(request)); err != nil {
					t.Fatal(err)
				}
				until(t, func() bool { return l.s.api.Waits.Len() == 1 }, func() string { return name + " does not wait" })
				if !half {
					_ = client.Close()
				} else if err := client.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				until(t, func() bool { return l.s.api.Waits.Len() == 0 }, func() string { return name + " still waits" })
				if !half {
					continue
				}
				b := make([]byte, 1000)
				n, _ := client.Read(b)
				if !strings.HasPrefix(string(b[:n]), fmt.Sprintf("HTTP/1.1 %d ", c.status)) {
					t.Errorf("%s: %q", name, b[:n])
				}
				_ = client.Close()
			}
		}
		l.do("POST", "/v1/tasks", dispatcher, `{"taskId":"t","queue":"q","type":"x"}`).want(201)
		var task v1.Task
		l.do("GET", "/v1/tasks/t", viewer, "").want(200).into(&task)
		if task.State != v1.Queued {
			t.Errorf("%+v", task)
		}
	})
}
