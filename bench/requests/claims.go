package requests

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/lubdub-io/lubdub/bench/load"
)

// MostAClaim is how many tasks one claim may request.
const MostAClaim = 100

// claims claims tasks of a queue for one worker until the queue is empty. Each task counts as one beat.
type claims struct {
	queue, token, body []byte
	over               bool
	keep               func(id, token []byte) bool // receives claimed tasks; nil: they are only counted
}

// Claims claims up to so many tasks per request until the queue is empty; into, if set, receives the tokens.
func Claims(queue string, w *Worker, most int, into *Tasks) load.Source {
	c := &claims{queue: []byte(queue), token: w.Token, body: fmt.Appendf(nil, `{"max":%d}`, most)}
	if into != nil {
		c.keep = into.setTokenOf
	}
	return c
}

func (c *claims) Next(dst []byte) []byte {
	if c.over {
		return nil
	}
	return post(dst, "/v1/queues/", c.queue, "/claim", c.token, c.body)
}

func (c *claims) Answered(status int, body []byte, t *load.Tally) (claimed int) {
	if expect(200, status, body, t) == 0 {
		c.over = true
		return 0
	}
	for ; ; claimed++ {
		i := bytes.Index(body, tokenField)
		if i < 0 {
			break
		}
		// The id is before the token, in the same envelope.
		if c.keep != nil && !c.keep(after(body[:i], taskIDField, '"'), after(body[i:], tokenField, '"')) {
			t.Refused("a task that is not of this run", 1)
			break
		}
		body = body[i+len(tokenField):]
	}
	c.over = claimed == 0
	return claimed
}

// noOps claims tasks, and starts and completes each, until the queue is empty. Each task counts as one beat.
type noOps struct {
	*claims
	held    []claimedTask
	started bool // the first task has been started
}

type claimedTask struct{ id, token []byte }

// NoOps claims up to so many tasks per request and ends them, with minimal work.
func NoOps(queue string, w *Worker, most int) Sources {
	return func(int, int) load.Source {
		o := &noOps{claims: Claims(queue, w, most, nil).(*claims)}
		o.keep = func(id, token []byte) bool {
			o.held = append(o.held, claimedTask{bytes.Clone(id), bytes.Clone(token)})
			return true
		}
		return o
	}
}

var (
	noOpStarted   = []byte(`{"attempt":1}`)
	noOpCompleted = []byte(`{"attempt":1,"outcome":"SUCCEEDED","output":null}`)
)

func (o *noOps) Next(dst []byte) []byte {
	switch {
	case len(o.held) == 0:
		return o.claims.Next(dst)
	case !o.started:
		return post(dst, "/v1/tasks/", o.held[0].id, "/started", o.held[0].token, noOpStarted)
	}
	return post(dst, "/v1/tasks/", o.held[0].id, "/completed", o.held[0].token, noOpCompleted)
}

func (o *noOps) Answered(status int, body []byte, t *load.Tally) (ended int) {
	if len(o.held) == 0 {
		o.claims.Answered(status, body, t)
		return 0
	}
	if expect(200, status, body, t) == 0 {
		o.over, o.held = true, nil
		return 0
	}
	if o.started = !o.started; o.started {
		return 0
	}
	o.held = o.held[1:]
	return 1
}

// polls waits for tasks that never come. The first wait of each has a different length, so that at any time as many end and begin again
// as in the long run.
type polls struct {
	queue, token []byte
	wait         int64         // ms
	refused      *atomic.Int64 // of all pollers
	pause        func()        // after a refusal
}

const longestPoll = 60_000 // ms

// Polls makes each worker wait for tasks of a queue on a separate connection, endlessly. refused counts the refusals of all of them.
func Polls(queue string, workers []*Worker, refused *atomic.Int64) Sources {
	return func(i, n int) load.Source {
		return &polls{queue: []byte(queue), token: workers[i].Token, wait: longestPoll * int64(i+1) / int64(n), refused: refused,
			pause: Pause}
	}
}

func (p *polls) Next(dst []byte) []byte {
	return post(dst, "/v1/queues/", p.queue, "/claim", p.token, fmt.Appendf(nil, `{"waitMs":%d}`, p.wait))
}

// Answered pauses after a refusal, as a worker would: all begin at the same time, which may be too much.
func (p *polls) Answered(status int, body []byte, t *load.Tally) int {
	if expect(200, status, body, t) == 1 {
		p.wait = longestPoll
		return 1
	}
	p.refused.Add(1)
	p.pause()
	return 0
}

// Pause waits for up to a second, as independent clients do.
func Pause() { time.Sleep(rand.N(time.Second)) }
