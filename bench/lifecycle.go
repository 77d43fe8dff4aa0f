package bench

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/lubdub-io/lubdub/bench/load"
	"github.com/lubdub-io/lubdub/bench/report"
)

// runLifecycle takes tasks through their whole life: create, started, three beats, completed.
func runLifecycle(ctx context.Context, b *bench, s *report.Scenario) error {
	f, err := b.fewTasks(ctx)
	if err != nil {
		return err
	}
	before := f.read()
	r, res, err := b.drive(ctx, &f.target, report.Run{Round: 1, Variant: "life cycles"}, load.Load{Source: func(i, n int) load.Source {
		return &lives{control: []byte(f.control)}
	}, For: b.short()})
	after := f.read()
	// CPU per beat would hold the other calls' too.
	r.ServerMicros, r.RedisMicros, r.GeneratorMicros = nil, nil, nil
	s.Runs = append(s.Runs, r)
	if err != nil {
		return err
	}
	cycles := res.Requests / callsOfALife
	s.Figures = append(s.Figures, report.Figure{
		Name: "life-cycles", What: fmt.Sprintf("life cycles of %d calls, %d of them beats", callsOfALife, beatsOfALife),
		Value: perSecond(cycles, res.Elapsed), Unit: "tasks/s",
	})
	for _, p := range []struct {
		name, what string
		v          *float64
	}{
		{"life-cycle-server-cpu", "CPU of the server for a life cycle", micros(after.server, before.server, cycles)},
		{"life-cycle-redis-cpu", "CPU of Redis for a life cycle", micros(after.redis, before.redis, cycles)},
	} {
		if p.v != nil {
			s.Figures = append(s.Figures, report.Figure{Name: p.name, What: p.what, Value: *p.v, Unit: "µs"})
		}
	}
	return nil
}

const (
	beatsOfALife = 3
	callsOfALife = 3 + beatsOfALife
)

// lives takes one task after the other through its life.
type lives struct {
	control   []byte
	call      int // of the life under way, from 0
	id, token []byte
	path      []byte
}

var (
	creationBody   = []byte(`{"heartbeatIntervalMs":30000,"heartbeatTimeoutMs":90000}`)
	startedBody    = []byte(`{"attempt":1,"workerId":"worker-1"}`)
	beatBodyBytes  = []byte(beatBody)
	completionBody = []byte(`{"attempt":1,"workerId":"worker-1","outcome":"SUCCEEDED","output":{"rows":12345}}`)
	taskIDField    = []byte(`"taskId":"`)
)

func (l *lives) Next(dst []byte) []byte {
	switch {
	case l.call == 0:
		return post(dst, "/v1/tasks", l.control, creationBody)
	case l.call == 1:
		return l.callback(dst, "/started", startedBody)
	case l.call < callsOfALife-1:
		return l.callback(dst, "/heartbeat", beatBodyBytes)
	}
	return l.callback(dst, "/completed", completionBody)
}

func (l *lives) callback(dst []byte, call string, body []byte) []byte {
	l.path = append(append(append(l.path[:0], "/v1/tasks/"...), l.id...), call...)
	return post(dst, string(l.path), l.token, body)
}

func (l *lives) Answered(status int, body []byte, t *load.Tally) (beats int) {
	call := l.call
	l.call = (l.call + 1) % callsOfALife
	switch {
	case call == 0 && status == 201:
		l.id = append(l.id[:0], after(body, taskIDField, '"')...)
		l.token = append(l.token[:0], after(body, tokenField, '"')...)
	case call == 0 || status != 200:
		t.Refused(strconv.Itoa(status), 1)
		l.call = 0 // its life is over for this load
	case call >= 2 && call < callsOfALife-1:
		return 1
	}
	return 0
}

// end completes tasks, so that a deployment that is not the run's own is left as it was found.

func (t *tasks) end(i, n int) load.Source {
	return &singles{tasks: t, walk: walk{share: t.part(i, n), once: true}, path: "/completed", body: bytes.Clone(completionBody)}
}
