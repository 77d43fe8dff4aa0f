package requests

import (
	"bytes"
	"strconv"
	"sync/atomic"

	"github.com/lubdub-io/lubdub/bench/load"
)

const (
	startBody    = `{"attempt":1,"workerId":"worker-1"}`
	beatBody     = `{"attempt":1,"workerId":"worker-1","progressPct":45,"message":"Processing partition 5 of 10"}`
	completeBody = `{"attempt":1,"workerId":"worker-1","outcome":"SUCCEEDED","output":{"rows":12345}}`
)

// singles makes one call per request, for one task after the other.
type singles struct {
	*Tasks
	walk
	call     string
	id, body []byte
	pct      []byte // the digits of the progress in body, which change with each beat; nil: the body has no progress
	count    int
}

func (t *Tasks) singles(i, n int, call, body string, once bool) load.Source {
	s := &singles{Tasks: t, walk: t.walk(i, n, once), call: call, body: []byte(body)}
	if at := bytes.Index(s.body, []byte(":45")); at >= 0 {
		s.pct = s.body[at+1 : at+3]
	}
	return s
}

// Beats beats for tasks, one per request, endlessly.
func (t *Tasks) Beats(i, n int) load.Source { return t.singles(i, n, "/heartbeat", beatBody, false) }

// BeatOnce beats once for each task.
func (t *Tasks) BeatOnce(i, n int) load.Source { return t.singles(i, n, "/heartbeat", beatBody, true) }

// Start starts each task.
func (t *Tasks) Start(i, n int) load.Source { return t.singles(i, n, "/started", startBody, true) }

// Complete completes each task.
func (t *Tasks) Complete(i, n int) load.Source {
	return t.singles(i, n, "/completed", completeBody, true)
}

func (s *singles) Next(dst []byte) []byte {
	task, ok := s.next()
	if !ok {
		return nil
	}
	if s.pct != nil {
		s.count = (s.count + 1) % 90
		s.pct[0], s.pct[1] = byte('1'+s.count/10), byte('0'+s.count%10)
	}
	s.id = s.appendID(s.id[:0], task)
	return post(dst, "/v1/tasks/", s.id, s.call, s.Tasks.token(task), s.body)
}

func (s *singles) Answered(status int, body []byte, t *load.Tally) int {
	return expect(200, status, body, t)
}

// batches beats for many tasks per request.
type batches struct {
	*Tasks
	walk
	items    int
	progress bool
	sent     int
	body     []byte
}

// Batches beats for so many tasks per request, with or without progress; once ends after one beat for each task.
func (t *Tasks) Batches(items int, progress, once bool) Sources {
	return func(i, n int) load.Source {
		return &batches{Tasks: t, walk: t.walk(i, n, once), items: items, progress: progress}
	}
}

func (b *batches) Next(dst []byte) []byte {
	b.body = append(b.body[:0], `{"heartbeats":[`...)
	for b.sent = 0; b.sent < min(b.items, len(b.share)); b.sent++ {
		task, ok := b.next()
		if !ok {
			break
		}
		if b.sent > 0 {
			b.body = append(b.body, ',')
		}
		b.body = b.appendID(append(b.body, `{"taskId":"`...), task)
		b.body = append(append(b.body, `","taskToken":"`...), b.token(task)...)
		b.body = append(b.body, `","attempt":1`...)
		if b.progress {
			b.body = append(b.body, `,"workerId":"worker-1","progressPct":45,"message":"Processing partition 5 of 10"`...)
		}
		b.body = append(b.body, '}')
	}
	if b.sent == 0 {
		return nil
	}
	b.body = append(b.body, `]}`...)
	return post(dst, "/v1/heartbeats", nil, "", nil, b.body)
}

var acceptedField = []byte(`"status":200`)

func (b *batches) Answered(status int, body []byte, t *load.Tally) int {
	if status != 200 {
		t.Refused(refusal(status, body), int64(b.sent))
		return 0
	}
	accepted := bytes.Count(body, acceptedField)
	if accepted == b.sent {
		return accepted
	}
	items := results(body)
	for _, r := range items {
		if r.Status != 200 {
			t.Refused(strconv.Itoa(r.Status)+" in a batch", 1)
		}
	}
	if missing := b.sent - len(items); missing > 0 {
		t.Refused("no result in the batch", int64(missing))
	}
	return accepted
}

// Worker is a registered worker.
type Worker struct {
	ID, Token []byte
	seq       atomic.Int64 // of its last beat
}

// workerBeats beats for workers, one after the other.
type workerBeats struct {
	workers []*Worker
	at      int
	body    []byte
}

// WorkerBeats beats for workers endlessly. Each has one connection, unless there are more connections than workers.
func WorkerBeats(workers ...*Worker) Sources {
	return func(i, n int) load.Source {
		if len(workers) < n {
			return &workerBeats{workers: workers[i%len(workers):][:1]}
		}
		return &workerBeats{workers: workers[len(workers)*i/n : len(workers)*(i+1)/n]}
	}
}

func (w *workerBeats) Next(dst []byte) []byte {
	next := w.workers[w.at]
	w.at = (w.at + 1) % len(w.workers)
	w.body = strconv.AppendInt(append(w.body[:0], `{"activeCount":100,"seq":`...), next.seq.Add(1), 10)
	w.body = append(w.body, `,"completedDelta":3,"failedDelta":1}`...)
	return post(dst, "/v1/workers/", next.ID, "/heartbeat", next.Token, w.body)
}

func (w *workerBeats) Answered(status int, body []byte, t *load.Tally) int {
	return expect(200, status, body, t)
}
