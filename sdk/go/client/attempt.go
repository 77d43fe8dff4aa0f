package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Attempt is the handle of an attempt that is tracked: beats are sent for it until it is completed or given up. It is for
// any number of goroutines at once.
type Attempt struct {
	client *Client
	beater *beater
	holder beats.Holder // nil: the client beats for it
	taskID string
	number int
	last   *v1.Progress
	ctx    context.Context
	end    context.CancelCauseFunc
	lease  Lease
	told   func(error) // of an end that the server or the lease brings

	mu       sync.Mutex
	phase    phase
	token    string
	expires  time.Time // the token; zero: not known
	interval time.Duration
	timeout  time.Duration // how long it may be silent
	own      bool          // the timeout is its own, not its worker's
	accepted time.Time     // when the last accepted beat left
	progress progress
	cause    error // why it is not ours any more
	asked    bool  // for its end
	warned   bool  // of a refusal that ends nothing

	// The beater's, under its mutex.
	at      int       // in its list
	due     time.Time // of the next beat
	fresh   bool      // there was none yet
	busy    bool      // a request that is under way names it
	sending uint64    // the version of the progress in there
}

type phase uint8

const (
	running phase = iota
	ending        // its completion is on its way
	over
)

// progress is what was said last. It replaces what was not sent yet.
type progress struct {
	pct        float64
	message    string
	hasPct     bool
	hasMessage bool
	version    uint64 // of what was said
	delivered  uint64 // of what a server has acknowledged
}

// maxMessage is how long a message may be; a server cuts what is longer.
const maxMessage = 1024

// TaskID is the task's.
func (a *Attempt) TaskID() string { return a.taskID }

// Number counts the attempts at the task from 1.
func (a *Attempt) Number() int { return a.number }

// Context is the one that Track returned.
func (a *Attempt) Context() context.Context { return a.Within(a.ctx) }

// LastProgress is what the attempt before this one reported last: pct from 0 to 100, and false where it did not say.
func (a *Attempt) LastProgress() (pct float64, message string, ok bool) {
	if a.last == nil {
		return 0, "", false
	}
	_ = json.Unmarshal(a.last.ProgressPct, &pct)
	_ = json.Unmarshal(a.last.Message, &message)
	return pct, message, true
}

// Progress says how far the work has come, 0 to 100, and says it in words of at most 1,024 bytes; more is cut. It replaces what was
// not sent yet, goes with the next beat, and never waits. Its error says that pct is out of bounds, or why the attempt is over.
func (a *Attempt) Progress(pct float64, message string) error {
	if !(pct >= 0 && pct <= 100) {
		return fmt.Errorf("lubdub: a progress of %v is not between 0 and 100", pct)
	}
	if len(message) > maxMessage {
		message = cut(message, maxMessage)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.ended(); err != nil {
		return err
	}
	p := &a.progress
	p.pct, p.hasPct, p.version = pct, true, p.version+1
	if message != "" {
		p.message, p.hasMessage = message, true
	}
	return nil
}

// ended says why the attempt is over; nil: it is not. A strict lease is looked at first, since after a sleep of the machine nothing
// else may have run yet.
func (a *Attempt) ended() error {
	if a.cause != nil {
		return a.cause
	}
	if a.phase != running {
		return ErrEnded
	}
	if a.lease == Strict {
		a.lookAtLease(a.client.set.clock.Now())
	}
	return a.cause
}

// lookAtLease ends the attempt if its lease is over. The mutex is held.
func (a *Attempt) lookAtLease(now time.Time) (left time.Duration) {
	silent := clock.Elapsed(a.accepted, now)
	if left = a.timeout - silent; left <= 0 {
		a.close(LeaseEnded{Silent: silent})
	}
	return left
}

// close ends the context, since the attempt is not ours any more. The mutex is held.
func (a *Attempt) close(cause error) {
	if a.cause != nil || a.phase == over {
		return
	}
	a.cause = cause
	a.end(cause)
	if a.told != nil {
		go a.told(cause)
	}
}

// cut shortens a text to n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// held is what the beaters, ours and a worker's, see of an attempt.
type held struct{ *Attempt }

func (h held) Name() (string, int) { return h.taskID, h.number }

// Interval is how often it must be heard; 0: as its worker.
func (h held) Interval() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.own {
		return 0
	}
	return h.interval
}

func (h held) AppendProgress(b []byte) ([]byte, uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.progress.append(b), h.progress.version
}

func (p *progress) append(b []byte) []byte {
	if p.version == p.delivered {
		return b
	}
	if p.hasPct {
		b = strconv.AppendFloat(append(b, `,"progressPct":`...), p.pct, 'g', -1, 64)
	}
	if p.hasMessage {
		b = appendString(append(b, `,"message":`...), p.message)
	}
	return b
}

// Accepted says that a beat was, which left at a time. A lease of 0 is the attempt's own.
func (h held) Accepted(sent time.Time, lease time.Duration, version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lease > 0 && !h.own {
		h.timeout = lease
	}
	if h.timeout > 0 {
		left := h.timeout - clock.Elapsed(h.accepted, h.client.set.clock.Now())
		h.client.set.metrics.LeaseLeft(max(0, float64(left)/float64(h.timeout)))
	}
	if sent.After(h.accepted) {
		h.accepted = sent
	}
	h.progress.delivered = max(h.progress.delivered, version)
}

func (h held) Cancel(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked || h.phase != running || h.cause != nil {
		return
	}
	h.asked = true
	h.end(Cancelled{Reason: reason})
	if h.told != nil {
		go h.told(Cancelled{Reason: reason})
	}
}

func (h held) Lost(code, reason string) {
	cause := causeOf(code, &v1.Error{Reason: reason})
	if cause == nil {
		cause = Lost{Reason: reason}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == running {
		h.close(cause)
	}
}

func (h held) Over() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause != nil
}

func (h held) Look(now time.Time) (left time.Duration, matters bool) {
	if h.lease != Strict {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != running || h.cause != nil {
		return 0, false
	}
	return h.lookAtLease(now), true
}

// workerID names the worker that holds the attempt; empty: none does.
func (a *Attempt) workerID() string {
	if a.holder == nil {
		return ""
	}
	return a.holder.WorkerID()
}

// appendString writes a string as JSON.
func appendString(b []byte, s string) []byte {
	plain := utf8.ValidString(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, err := json.Marshal(s)
	if err != nil { // of a string it does not fail
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

var _ beats.Attempt = held{}
