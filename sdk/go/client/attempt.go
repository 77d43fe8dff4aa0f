package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/sdk/go/internal/beats"
	"github.com/lubdub-io/lubdub/sdk/go/internal/clock"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Attempt is the handle of a tracked attempt: heartbeats are sent until it is completed or abandoned. Any number of goroutines may use it.
type Attempt struct {
	client *Client
	beater *beater
	holder beats.Holder // nil: the client sends the heartbeats
	taskID string
	number int
	last   *v1.Progress
	ctx    context.Context
	end    context.CancelCauseFunc
	lease  Lease
	onEnd  func(error) // called when the server or the lease ends it

	mu              sync.Mutex
	phase           phase
	token           string
	expires         time.Time // of the token; zero: unknown
	interval        time.Duration
	timeout         time.Duration // the heartbeat timeout
	own             bool          // the timeout is its own, not its worker's
	accepted        time.Time     // when the last accepted heartbeat was sent
	firstAnswer     time.Time     // when the first accepted heartbeat was answered; zero: none was
	progress        progress
	cause           error // why it is no longer ours
	cancelRequested bool  // cancellation was requested
	warned          bool  // about a refusal that does not end it

	// The beater's, under its mutex.
	at      int       // in its list
	due     time.Time // of the next heartbeat
	fresh   bool      // no heartbeat was sent yet
	busy    bool      // a request in flight includes it
	sending uint64    // the version of the progress in that request
}

type phase uint8

const (
	running phase = iota
	ending        // its completion is being sent
	over
)

// progress is the last reported progress and checkpoint. They replace those that were not sent yet.
type progress struct {
	pct        float64
	message    string
	hasMessage bool
	checkpoint []byte // compact JSON
	version    uint64 // increases with each report
	moved      uint64 // the version in which pct or message changed
	saved      uint64 // the version in which the checkpoint changed
	delivered  uint64 // the version that a server has acknowledged
}

// unsent reports whether a server has yet to acknowledge a part.
func (p *progress) unsent() bool { return p.version > p.delivered }

// maxMessage is the limit of a message in bytes; a server cuts longer ones.
const maxMessage = 1024

// maxCheckpoint is the limit of a checkpoint as JSON without whitespace, in bytes.
const maxCheckpoint = 16 << 10

// maxLevels is the limit of how deeply its arrays and objects are nested.
const maxLevels = 100

// TaskID returns the task's id.
func (a *Attempt) TaskID() string { return a.taskID }

// Number returns the number of the attempt, counted from 1.
func (a *Attempt) Number() int { return a.number }

// Context returns the context that Track returned.
func (a *Attempt) Context() context.Context { return a.Within(a.ctx) }

// LastProgress returns the last progress that the previous attempt reported: pct from 0 to 100, and false if it reported none.
func (a *Attempt) LastProgress() (pct float64, message string, ok bool) { return a.last.Reported() }

// Progress reports progress as a percentage, 0 to 100, and a message of at most 1,024 bytes; more is cut. It replaces progress that was not
// sent yet, is sent with the next heartbeat, and never waits. It fails if pct is out of range, or with the reason why the attempt is over.
func (a *Attempt) Progress(pct float64, message string) error {
	if !(pct >= 0 && pct <= 100) {
		return fmt.Errorf("lubdub: progress %v is not between 0 and 100", pct)
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
	p.version++
	p.pct, p.moved = pct, p.version
	if message != "" {
		p.message, p.hasMessage = message, true
	}
	return nil
}

// LastCheckpoint decodes the last checkpoint that an earlier attempt of the task saved into v, a pointer. Without one it returns false and
// leaves v unchanged.
func (a *Attempt) LastCheckpoint(v any) (ok bool, err error) { return a.last.Checkpoint(v) }

// Checkpoint saves how far the work is, as any value but nil that encoding/json encodes in at most 16 KiB, for the next attempt's
// LastCheckpoint. It replaces a checkpoint that was not sent yet, is sent with the next heartbeat, and never waits. It fails if v cannot be
// sent, or with the reason why the attempt is over.
func (a *Attempt) Checkpoint(v any) error {
	raw, err := rawJSON(v)
	if err != nil {
		return fmt.Errorf("lubdub: the checkpoint: %w", err)
	}
	var compact bytes.Buffer
	if len(raw) > 0 {
		_ = json.Compact(&compact, raw) // raw is JSON
	}
	switch text := compact.Bytes(); {
	case len(text) == 0 || string(text) == "null":
		return errors.New("lubdub: a checkpoint of null cannot be saved")
	case len(text) > maxCheckpoint:
		return fmt.Errorf("lubdub: the checkpoint has %d bytes, and a server takes %d; put the data elsewhere and save where it is",
			len(text), maxCheckpoint)
	case depth(text) > maxLevels:
		return fmt.Errorf("lubdub: the checkpoint is nested %d levels deep, and a server takes %d; save it as a string", depth(text), maxLevels)
	case !utf8.Valid(text): // which encoding/json accepts, and a server refuses with the whole heartbeat
		return errors.New("lubdub: the checkpoint is not UTF-8")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.ended(); err != nil {
		return err
	}
	p := &a.progress
	p.version++
	p.checkpoint, p.saved = compact.Bytes(), p.version
	return nil
}

// depth returns how deeply the arrays and objects of a JSON text are nested.
func depth(text []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			level++
			deepest = max(deepest, level)
		case c == ']' || c == '}':
			level--
		}
	}
	return deepest
}

// ended returns why the attempt is over; nil: it is not. A strict lease is checked first, since nothing else may have run since the host
// slept.
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

// lookAtLease ends the attempt if its lease has expired. The mutex is held.
func (a *Attempt) lookAtLease(now time.Time) (left time.Duration) {
	silent := clock.Elapsed(a.accepted, now)
	if left = a.timeout - silent; left <= 0 {
		a.close(LeaseEnded{Silent: silent})
	}
	return left
}

// close ends the context, since the attempt is no longer ours. The mutex is held.
func (a *Attempt) close(cause error) {
	if a.cause != nil || a.phase == over {
		return
	}
	a.cause = cause
	a.end(cause)
	if a.onEnd != nil {
		go a.onEnd(cause)
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

// held is an attempt as the client's and a worker's heartbeat loops see it.
type held struct{ *Attempt }

func (h held) Name() (string, int) { return h.taskID, h.number }

// Interval is how often it needs a heartbeat; 0: as often as its worker.
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

func (h held) Deliver(ctx context.Context) error {
	k := h.lastBeat()
	if k == nil {
		return nil
	}
	k.token = h.holder.Token() // its own may have expired
	return h.persist(ctx, k, nil)
}

func (p *progress) append(b []byte) []byte {
	if p.moved > p.delivered {
		b = strconv.AppendFloat(append(b, `,"progressPct":`...), p.pct, 'g', -1, 64)
		if p.hasMessage {
			b = appendString(append(b, `,"message":`...), p.message)
		}
	}
	if p.saved > p.delivered {
		b = append(append(b, `,"details":`...), p.checkpoint...)
	}
	return b
}

// Accepted applies an accepted heartbeat that was sent at a time. A lease of 0 means the attempt's own.
func (h held) Accepted(sent time.Time, lease time.Duration, version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lease > 0 && !h.own {
		h.timeout = lease
	}
	now := h.client.set.clock.Now()
	if h.firstAnswer.IsZero() {
		h.firstAnswer = now
	}
	if h.timeout > 0 {
		left := h.timeout - clock.Elapsed(h.accepted, now)
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
	if h.cancelRequested || h.phase != running || h.cause != nil {
		return
	}
	h.cancelRequested = true
	h.end(Cancelled{Reason: reason})
	if h.onEnd != nil {
		go h.onEnd(Cancelled{Reason: reason})
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

// workerID is the id of the worker that holds the attempt; empty: none.
func (a *Attempt) workerID() string {
	if a.holder == nil {
		return ""
	}
	return a.holder.WorkerID()
}

// appendString appends a string as JSON.
func appendString(b []byte, s string) []byte {
	plain := utf8.ValidString(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, err := json.Marshal(s)
	if err != nil { // does not happen for a string
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

var _ beats.Attempt = held{}
