package beats

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/internal/beatparse"
	"github.com/lubdub-io/lubdub/api/internal/evloop"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/beats"
)

// beatLoop answers single beats on an event loop: those whose shape, token and body leave no doubt. Everything else, refusals
// included that need nothing but the request, it hands over before anything has come of it, so that it is answered as it would be
// without the loop. A turn's beats land together, and a flush's answers are written together.
//
// All is the loop's own but what mu guards.
type beatLoop struct {
	h       *Handlers
	loop    *evloop.Loop
	count   *httpapi.Stripe
	parsed  beatparse.Request
	body    beatbody.Body
	turn    []*beats.Beat       // of this turn
	landing []*beats.Beat       // the same, since Land makes of the other what it likes
	opened  int                 // tokens in this turn
	done    func([]*beats.Beat) // collect, made once
	spare   []*loopBeat
	text    []byte // of a body
	out     []byte // an answer
	stamp   jsonscan.Stamp
	date    dateLine
	ctx     fasthttp.RequestCtx // of refusals
	refused bytes.Buffer

	mu     sync.Mutex
	landed []*beats.Beat
	before []*beats.Beat // that have had their answers; the memory of the next ones that land
	posted bool          // the loop is notified that some have landed
}

// loopBeat is a beat on its way through a loop, from the request to the answer.
type loopBeat struct {
	oneBeat
	conn  *evloop.Conn
	id    []byte // of the request
	start time.Time
}

// NewLoop returns the handler of an event loop's requests.
func (h *Handlers) NewLoop(l *evloop.Loop) evloop.Handler {
	b := &beatLoop{h: h, loop: l, count: h.api.Metrics.Stripe()}
	b.done = b.collect
	return b
}

// Read takes in a beat.
func (l *beatLoop) Read(c *evloop.Conn, unread []byte) (int, evloop.Next) {
	p := &l.parsed
	switch v := beatparse.Parse(unread, httpapi.LimitCallback, p); {
	case v == beatparse.Doubt || p.Kind != beatparse.Task:
	case v == beatparse.Partial:
		return p.Total, evloop.More
	case l.begin(c):
		return p.Total, evloop.Begun
	}
	return 0, evloop.HandOver
}

// begin begins the beat that was parsed, unless there is a doubt. Nothing has an effect before the last of them.
func (l *beatLoop) begin(c *evloop.Conn) bool {
	api, p := l.h.api, &l.parsed
	local := l.local()
	now := api.RedisTimeAt(local)
	who, opened := l.principal(p.Token, now)
	if who == nil {
		return false
	}
	a := who.Task()
	if a == nil || httpapi.CheckTask(a, p.ID) != nil || l.body.Read(p.Body) != nil || httpapi.CheckAttempt(a, l.body.Attempt) != nil {
		return false
	}
	if opened == nil {
		l.count.CacheHits.Add(1)
	} else if !api.Remember(opened, now) {
		return false
	}
	if c.Stranger() {
		c.Known(who.Holder())
	}
	l.count.InFlight.Add(1)
	b := l.take()
	b.conn, b.start, b.who, b.now = c, l.loop.Now(), who, now
	b.id = api.AppendRequestID(b.id[:0], p.RequestID)
	if r := api.TakeBeat(who, a.Scope.Tenant, local); r != nil {
		l.refuse(b, r)
		return true
	}
	b.prepare(a, &l.body, b.start)
	l.turn = append(l.turn, &b.beat)
	return true
}

// maxOpened bounds the time that a turn takes for tokens that are not in the cache. Others are for those whom the loop holds up
// less.
const maxOpened = 16

// principal returns whom a token stands for, and what was opened for that where the cache did not know it; nil: there is a doubt.
func (l *beatLoop) principal(bearer []byte, now time.Time) (*httpapi.Principal, *httpapi.OpenedToken) {
	if who := l.h.api.Cached(bearer, now); who != nil {
		return who, nil
	}
	if l.opened == maxOpened {
		return nil, nil
	}
	l.opened++
	o := l.h.api.Open(bearer, now)
	if o == nil {
		return nil, nil
	}
	return o.Principal(), o
}

// local is this process's time at which the turn began.
func (l *beatLoop) local() time.Time {
	return l.h.api.LocalAt(l.loop.Now())
}

// Turn lands the turn's beats.
func (l *beatLoop) Turn() {
	l.opened = 0
	if len(l.turn) == 0 {
		return
	}
	l.landing = append(l.landing[:0], l.turn...)
	defer func() {
		if p := recover(); p != nil {
			for _, b := range l.landing {
				l.failed(b.Of.(*loopBeat), p)
			}
		}
		clear(l.turn)
		clear(l.landing)
		l.turn = l.turn[:0]
	}()
	l.h.beats.Land(l.turn, l.done)
}

// collect takes, on any goroutine, beats that have their result.
func (l *beatLoop) collect(beats []*beats.Beat) {
	l.mu.Lock()
	l.landed = append(l.landed, beats...)
	first := !l.posted
	l.posted = true
	l.mu.Unlock()
	if first {
		l.loop.Post(nil)
	}
}

// Landed answers the beats that have landed.
func (l *beatLoop) Landed(any) {
	l.mu.Lock()
	landed := l.landed
	l.landed, l.posted = l.before[:0], false
	l.mu.Unlock()
	now := time.Now()
	for _, b := range landed {
		l.answer(b.Of.(*loopBeat), now)
	}
	clear(landed)
	l.before = landed
}

// answer answers a beat that has its result.
func (l *beatLoop) answer(b *loopBeat, now time.Time) {
	defer func() {
		if p := recover(); p != nil {
			l.failed(b, p)
		}
	}()
	if b.conn == nil {
		return // it was answered when something panicked
	}
	body, r := l.h.appendResult(append(l.text[:0], '{'), &b.oneBeat, &l.stamp, l.count)
	l.text = body
	if r != nil {
		l.refuse(b, r)
		return
	}
	l.text = append(body, '}')
	l.out = l.appendOK(l.out[:0], b.id, l.text)
	var sent func()
	if b.firstCancel() {
		a := b.beat.Attempt
		sent = func() { l.h.beats.CancelDelivered(a) }
	}
	l.count.Observe(fasthttp.StatusOK, now.Sub(b.start))
	b.conn.AnswerTold(l.out, l.loop.Stopping(), sent)
	l.over(b)
}

// appendOK appends a whole answer, as fasthttp writes it.
func (l *beatLoop) appendOK(dst, id, body []byte) []byte {
	dst = append(dst, "HTTP/1.1 200 OK\r\nDate: "...)
	dst = l.date.append(dst, l.loop.Now())
	dst = append(dst, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\nX-Request-Id: "...)
	dst = append(dst, id...)
	if l.loop.Stopping() {
		dst = append(dst, "\r\nConnection: close"...)
	}
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}

// refuse answers a beat with a refusal.
func (l *beatLoop) refuse(b *loopBeat, r *httpapi.Refusal) {
	l.h.api.Metrics.RefusedBeat(r)
	l.count.Observe(r.Status, time.Since(b.start))
	b.conn.Answer(l.refusal(b, r))
	l.over(b)
}

// refusal returns a whole answer that is one, and whether the connection ends with it.
func (l *beatLoop) refusal(b *loopBeat, r *httpapi.Refusal) (answer []byte, last bool) {
	ctx := &l.ctx
	ctx.Response.Reset()
	ctx.Response.Header.SetCanonical(httpapi.HeaderRequestIDBytes, b.id)
	l.h.api.WriteRefusal(ctx, r)
	if l.loop.Stopping() {
		ctx.SetConnectionClose()
	}
	l.refused.Reset()
	_, _ = ctx.Response.WriteTo(&l.refused) // memory takes it all
	return l.refused.Bytes(), ctx.Response.ConnectionClose()
}

// maxSpareBeats bounds what a burst leaves behind.
const maxSpareBeats = 4096

func (l *beatLoop) take() *loopBeat {
	if n := len(l.spare); n > 0 {
		b := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return b
	}
	b := new(loopBeat)
	b.beat.Of = b
	return b
}

// over ends a beat that has had its answer.
func (l *beatLoop) over(b *loopBeat) {
	l.count.InFlight.Add(-1)
	b.conn, b.who, b.beat.Attempt = nil, nil, nil // these must not be held
	if len(l.spare) < maxSpareBeats {
		l.spare = append(l.spare, b)
	}
}

// failed answers a beat on whose way something panicked. Others may still hold the beat.
func (l *beatLoop) failed(b *loopBeat, p any) {
	if b.conn == nil {
		return // it has had its answer
	}
	r := l.h.api.Panicked(p, string(b.id), fasthttp.MethodPost, "/v1/tasks/{taskId}/heartbeat")
	b.conn.Answer(l.refusal(b, r))
	l.count.InFlight.Add(-1)
	b.conn = nil
}

// dateLine is the time of answers, which changes once a second.
type dateLine struct {
	second int64
	text   []byte
}

func (d *dateLine) append(dst []byte, now time.Time) []byte {
	if s := now.Unix(); s != d.second {
		d.second, d.text = s, fasthttp.AppendHTTPDate(d.text[:0], now)
	}
	return append(dst, d.text...)
}
