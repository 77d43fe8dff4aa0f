package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
)

// Requests of registered workers.

// refusal is a status and the code that explains it.
func refusal(status int, body []byte) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + string(after(body, errorField, '"')))
}

var errorField = []byte(`"error":"`)

// registrations registers workers, one a request.
type registrations struct {
	queue   string
	control []byte
	workers []*worker
	at, end int
}

func (r *registrations) Next(dst []byte) []byte {
	if r.at == r.end {
		return nil
	}
	return post(dst, "/v1/workers", r.control, fmt.Appendf(nil, `{"queue":"%s","types":["%s"],"maxConcurrent":1000000}`, r.queue, jobType))
}

var (
	workerIDField    = []byte(`"workerId":"`)
	workerTokenField = []byte(`"workerToken":"`)
)

func (r *registrations) Answered(status int, body []byte, t *load.Tally) int {
	at := r.at
	r.at++
	w := &worker{id: bytes.Clone(after(body, workerIDField, '"')), token: bytes.Clone(after(body, workerTokenField, '"'))}
	if status != 201 || len(w.id) == 0 || len(w.token) == 0 {
		t.Refused(refusal(status, body), 1)
		return 0
	}
	r.workers[at] = w
	return 1
}

// workerBeats beats for workers, one after the other.
type workerBeats struct {
	workers []*worker
	at      int
	path    []byte
	body    []byte
}

// beatsOf makes the sources of beats of workers: each has one connection, unless there are more connections than
// workers.
func beatsOf(workers []*worker) func(i, n int) load.Source {
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
	w.path = append(append(append(w.path[:0], "/v1/workers/"...), next.id...), "/heartbeat"...)
	w.body = append(w.body[:0], `{"activeCount":100,"seq":`...)
	w.body = strconv.AppendInt(w.body, next.seq.Add(1), 10)
	w.body = append(w.body, `,"completedDelta":3,"failedDelta":1}`...)
	return post(dst, string(w.path), next.token, w.body)
}

func (w *workerBeats) Answered(status int, body []byte, t *load.Tally) int {
	if status == 200 {
		return 1
	}
	t.Refused(refusal(status, body), 1)
	return 0
}

// enqueuing is a creation whose tasks wait in a queue, so that there are no tokens yet.
type enqueuing struct{ creation }

var createdField = []byte(`"status":201`)

func (e *enqueuing) Answered(status int, body []byte, t *load.Tally) int {
	if status != 200 {
		t.Refused(refusal(status, body), int64(e.size))
		return 0
	}
	created := bytes.Count(body, createdField)
	if created < e.size {
		t.Refused("not created in a batch", int64(e.size-created))
	}
	return created
}

// mostAClaim is how many tasks one claim may ask for.
const mostAClaim = 100

// claims claims tasks of a queue for one worker until the queue is empty. Each task counts as one beat.
type claims struct {
	path  string
	token []byte
	body  []byte
	over  bool
	into  *tasks // takes the tokens; nil: nobody needs them
}

func newClaims(queue string, w *worker, most int, into *tasks) *claims {
	return &claims{path: "/v1/queues/" + queue + "/claim", token: w.token, body: fmt.Appendf(nil, `{"max":%d}`, most), into: into}
}

func (c *claims) Next(dst []byte) []byte {
	if c.over {
		return nil
	}
	return post(dst, c.path, c.token, c.body)
}

func (c *claims) Answered(status int, body []byte, t *load.Tally) (claimed int) {
	if status != 200 {
		t.Refused(refusal(status, body), 1)
		c.over = true
		return 0
	}
	if c.into == nil {
		claimed = bytes.Count(body, tokenField)
	} else {
		claimed = c.keep(body, t)
	}
	c.over = claimed == 0
	return claimed
}

// keep takes the tokens of what was claimed. A task's number stands at the end of its id.
func (c *claims) keep(body []byte, t *load.Tally) (kept int) {
	for rest := body; ; kept++ {
		i := bytes.Index(rest, tokenField)
		if i < 0 {
			return kept
		}
		// The id stands before the token, in the same envelope.
		id := after(rest[:i], taskIDField, '"')
		number, err := strconv.Atoi(string(bytes.TrimPrefix(id, []byte(c.into.prefix))))
		if err != nil || number >= len(c.into.at) {
			t.Refused("a task that is not of this run", 1)
			return kept
		}
		c.into.setToken(number, after(rest[i:], tokenField, '"'))
		rest = rest[i+len(tokenField):]
	}
}

// polls waits for tasks that never come. The first wait of each is another, so that at any time as many end and
// begin anew as in the long run.
type polls struct {
	path    string
	token   []byte
	first   int64 // ms
	begun   bool
	refused *atomic.Int64 // of all that poll
	pause   func()        // after a refusal
}

const longestPoll = 60_000 // ms

func pollsOf(queue string, workers []*worker, refused *atomic.Int64) func(i, n int) load.Source {
	return func(i, n int) load.Source {
		return &polls{path: "/v1/queues/" + queue + "/claim", token: workers[i].token, first: longestPoll * int64(i+1) / int64(n),
			refused: refused, pause: shortly}
	}
}

func (p *polls) Next(dst []byte) []byte {
	wait := int64(longestPoll)
	if !p.begun {
		wait = p.first
	}
	return post(dst, p.path, p.token, fmt.Appendf(nil, `{"waitMs":%d}`, wait))
}

// Answered pauses after a refusal, as a worker would: all begin at the same time, which may be too much.
func (p *polls) Answered(status int, body []byte, t *load.Tally) int {
	if status == 200 {
		p.begun = true
		return 1
	}
	p.refused.Add(1)
	t.Refused(refusal(status, body), 1)
	p.pause()
	return 0
}

func shortly() { time.Sleep(rand.N(time.Second)) }
