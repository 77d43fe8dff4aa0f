package api

import (
	"testing"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker"
)

func TestReleaseOfTheBrake(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, l *live) {
		var tasks []*v1.TaskEnvelope
		for range 60 {
			e := l.create(short)
			l.call(e, "started", `{"attempt":1}`).want(200)
			tasks = append(tasks, e)
		}
		l.pass(2100 * time.Millisecond)
		l.sweep()
		if task := l.get(tasks[0].TaskID); task.State != v1.Running || task.Liveness == nil || *task.Liveness != v1.LivenessLost {
			t.Fatalf("%+v", task)
		}
		l.do("POST", "/v1/system:release", l.control(roleViewer), "").want(403)
		operator := l.control(roleOperator)
		for _, body := range []string{`{"durationMs":0}`, `{"durationMs":-1}`, `{"durationMs":999}`, `{"durationMs":86400001}`, `{"for":1}`} {
			l.do("POST", "/v1/system:release", operator, body).want(400)
		}
		l.do("POST", "/v1/system:release", l.controlFor(roleOperator, "other", "other"),
			"").want(200).contains(`{"tasksReleased":0,"workersReleased":0}`)
		var r v1.ReleaseResponse
		l.do("POST", "/v1/system:release", operator, `{"durationMs":60000}`).want(200).into(&r)
		if r.TasksReleased != 60 || r.WorkersReleased != 0 || !r.ReleasedUntil.Equal(l.store.Clock.Now().Add(time.Minute)) {
			t.Fatalf("%+v", r)
		}
		l.sweep()
		for _, e := range tasks {
			if task := l.get(e.TaskID); task.State != v1.Failed {
				t.Fatalf("%+v", task)
			}
		}
	}, func(o *tracker.Options) { o.Brake = true })
}
