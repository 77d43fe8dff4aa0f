package worker

import (
	"context"
	"strconv"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// entry is an attempt in the inventory.
type entry struct {
	taskID     string
	number     int
	attempt    beats.Attempt // nil until it has started
	named      int64         // the last beat that names it
	extendedBy int64         // the last beat that extends its lease once accepted
	version    uint64
}

// leaving is an attempt whose completion is not answered yet. No beat may name it, and the server takes an attempt that two consecutive
// inventories omit for lost. So one inventory may omit it, and beats after that have no inventory until its completion is answered.
type leaving struct{ leftOut bool }

func keyOf(taskID string, number int) string { return taskID + "/" + strconv.Itoa(number) }

// unlist removes an attempt that did not start from the inventory.
func (w *Worker) unlist(e *v1.TaskEnvelope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.inventory, keyOf(e.TaskID, e.Attempt))
}

// holder is the interface through which package client adds attempts to the worker's beats.
type holder struct{ *Worker }

var _ beats.Holder = holder{}

func (h holder) Hold(a beats.Attempt) {
	id, number := a.Name()
	key := keyOf(id, number)
	_, strict := a.Look(h.clock.Now())
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.inventory[key]
	if e == nil {
		e = &entry{taskID: id, number: number}
		h.inventory[key] = e
	}
	if e.attempt = a; h.held {
		a.Lost("", forcedOffline)
	}
	if strict || a.Interval() > 0 { // it needs to be checked, or to beat, more often
		h.rouse()
	}
}

func (h holder) Release(a beats.Attempt, completes bool) {
	id, number := a.Name()
	h.mu.Lock()
	defer h.mu.Unlock()
	key := keyOf(id, number)
	e := h.inventory[key]
	delete(h.inventory, key)
	if completes {
		h.ending[key] = &leaving{}
	}
	for e != nil && h.inFlight && e.named == h.beats {
		h.free.Wait()
	}
}

func (h holder) Settled(a beats.Attempt) {
	id, number := a.Name()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ending, keyOf(id, number))
}

func (h holder) Token() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == nil {
		return ""
	}
	return h.session.token
}

func (h holder) Exchanges() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session != nil && h.session.exchange
}

func (h holder) Life() context.Context { return h.life }

func (h holder) WorkerID() string { return h.Worker.WorkerID() }

func (h holder) Lease() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == nil {
		return time.Minute
	}
	return h.session.timeout
}

// written describes a beat that has been encoded.
type written struct {
	seq      int64
	active   int
	named    int
	separate []beats.Attempt // these need separate beats, since this beat has no inventory
}

// write encodes a beat into the body. The mutex is held.
func (w *Worker) write() written {
	w.inFlight = true
	d := w.totals.next()
	out := written{seq: d.seq, active: len(w.jobs), named: len(w.inventory)}
	b := strconv.AppendInt(append(w.body[:0], `{"seq":`...), d.seq, 10)
	b = strconv.AppendInt(append(b, `,"activeCount":`...), int64(out.active), 10)
	b = strconv.AppendInt(append(b, `,"completedDelta":`...), d.completed, 10)
	b = strconv.AppendInt(append(b, `,"failedDelta":`...), d.failed, 10)
	if w.mayList() {
		b = append(w.appendInventory(append(b, `,"tasks":[`...)), ']')
	} else {
		out.separate = w.separateBeats()
	}
	w.body = append(b, '}')
	return out
}

// mayList reports whether an inventory may be sent, and records it as sent. The result does not matter: a server that did not answer may
// have applied it.
func (w *Worker) mayList() bool {
	for _, l := range w.ending {
		if l.leftOut {
			return false
		}
	}
	for _, l := range w.ending {
		l.leftOut = true
	}
	return true
}

func (w *Worker) appendInventory(b []byte) []byte {
	comma := false
	for _, e := range w.inventory {
		if e.attempt != nil && e.attempt.Over() {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma, e.named, e.extendedBy = true, w.beats, w.beats
		b = append(append(append(b, `{"taskId":"`...), e.taskID...), `","attempt":`...) // ids need no quoting
		b = strconv.AppendInt(b, int64(e.number), 10)
		if e.version = 0; e.attempt != nil && len(b) < beats.MaxReports {
			b, e.version = e.attempt.AppendProgress(b)
		}
		b = append(b, '}')
	}
	return b
}

// separateBeats returns the attempts that need separate beats when the worker's beat has no inventory. The others depend on the worker's
// beat.
func (w *Worker) separateBeats() (own []beats.Attempt) {
	for _, e := range w.inventory {
		switch {
		case e.attempt == nil || e.attempt.Over():
		case e.attempt.Interval() > 0:
			e.named = w.beats
			own = append(own, e.attempt)
		default:
			e.extendedBy, e.version = w.beats, 0
		}
	}
	return own
}
