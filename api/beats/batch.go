package beats

import (
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// batchRequest is the pooled state of a POST /v1/heartbeats. Nothing in it outlives the handler.
type batchRequest struct {
	items  []batchItem
	report []byte // the beats' reports point into it, also after it has grown
	beats  []*beats.Beat
	out    []byte
	stamp  jsonscan.Stamp

	named int  // how often the body contains the field heartbeats
	seen  bool // and it is an array
	count int  // number of entries, which may be more than items
}

type batchItem struct {
	body    beatbody.Body
	beat    beats.Beat
	who     *httpapi.Principal // of the item's own token, or of the request's
	attempt *model.Attempt     // the attempt that it is for
	refusal *httpapi.Refusal
}

var batchRequests = sync.Pool{New: func() any { return new(batchRequest) }}

// maxPooledBytes prevents one huge request from keeping its memory forever.
const maxPooledBytes = 1 << 20

// heartbeats answers POST /v1/heartbeats. A malformed body fails as a whole; an error in one item is that item's answer.
func (h *Handlers) heartbeats(req *httpapi.Request) (int, any, error) {
	body, err := req.Body()
	if err != nil {
		return 0, nil, err
	}
	b := batchRequests.Get().(*batchRequest)
	defer func() {
		if cap(b.out) > maxPooledBytes || cap(b.report) > maxPooledBytes {
			return
		}
		clear(b.beats)
		clear(b.items) // the pool must not keep tokens and attempts
		batchRequests.Put(b)
	}()
	if err := b.decode(body); err != nil {
		return 0, nil, err
	}
	authorizeItems(req, b)
	b.collect(req)
	h.beats.BeatMany(b.beats)
	h.answerItems(req, b)
	return fasthttp.StatusOK, nil, nil
}

// decode decodes the body, or returns what is wrong with its form.
func (b *batchRequest) decode(body []byte) error {
	b.items, b.report, b.beats, b.out = b.items[:0], b.report[:0], b.beats[:0], b.out[:0]
	if !utf8.Valid(body) {
		return httpapi.ErrNotUTF8
	}
	s := jsonscan.Scanner{Text: body}
	if !b.object(&s) || !s.End() {
		if err := httpapi.CheckJSON(body); err != nil {
			return err
		}
		return httpapi.InvalidField(fmt.Sprintf("heartbeats[%d]", b.count), fmt.Sprintf("heartbeats[%d] is not an object", b.count))
	}
	switch {
	case b.named > 1:
		return httpapi.DuplicateField("heartbeats")
	case !b.seen:
		return httpapi.InvalidField("heartbeats", "heartbeats is missing or not an array; send 1 to 1,000 beats in it")
	case b.count < 1 || b.count > httpapi.MaxBatch:
		return httpapi.InvalidField("heartbeats", fmt.Sprintf("heartbeats has %d entries; send 1 to %d", b.count, httpapi.MaxBatch))
	}
	return nil
}

func (b *batchRequest) object(s *jsonscan.Scanner) bool {
	b.named, b.seen, b.count = 0, false, 0
	if s.Peek() != '{' {
		return false
	}
	for more := s.Open('{', '}'); more; more = s.More('}') {
		name, ok := s.Name()
		if !ok {
			return false
		}
		if string(name) != "heartbeats" {
			ok = s.Skip()
		} else {
			b.named++
			b.items, b.count = b.items[:0], 0
			if b.seen = s.Peek() == '['; b.seen {
				ok = b.array(s)
			} else {
				ok = s.Skip()
			}
		}
		if !ok {
			return false
		}
	}
	return s.Close('}')
}

func (b *batchRequest) array(s *jsonscan.Scanner) bool {
	for more := s.Open('[', ']'); more; more = s.More(']') {
		if b.count >= httpapi.MaxBatch {
			if !s.Skip() {
				return false
			}
			b.count++
			continue
		}
		if len(b.items) < cap(b.items) {
			b.items = b.items[:len(b.items)+1]
		} else {
			b.items = append(b.items, batchItem{})
		}
		it := &b.items[len(b.items)-1]
		it.who, it.attempt, it.refusal = nil, nil, nil
		if !it.body.Decode(s, true) {
			return false
		}
		b.count++
	}
	return s.Close(']')
}

// collect creates the beats of all valid items.
func (b *batchRequest) collect(req *httpapi.Request) {
	arrived := req.Ctx.Time()
	for i := range b.items {
		it := &b.items[i]
		if it.refusal != nil {
			continue
		}
		if n := beatbody.KiB(it.body.Details); n > 0 {
			req.API.ChargeBeats(it.attempt.Scope.Tenant, n, req.Local())
		}
		start := len(b.report)
		b.report = it.body.AppendReport(b.report)
		it.beat = beats.Beat{
			Attempt: it.attempt, Report: borrowed(b.report[start:]), Details: borrowed(it.body.Details), Arrived: arrived,
		}
		b.beats = append(b.beats, &it.beat)
	}
}

func (h *Handlers) answerItems(req *httpapi.Request, b *batchRequest) {
	var last time.Time
	var cancels []*model.Attempt
	accepted := uint64(0)
	b.out = append(b.out, `{"results":[`...)
	for i := range b.items {
		it := &b.items[i]
		if it.refusal == nil && it.beat.Err != nil {
			it.refusal = httpapi.RefusalOf(operation, it.beat.Err)
			req.API.LogCause(it.refusal, req.Ctx.Response.Header.Peek(httpapi.HeaderRequestID))
		}
		if i > 0 {
			b.out = append(b.out, ',')
		}
		b.out = append(b.out, `{"taskId":`...)
		b.out = jsonscan.AppendString(b.out, clipID(it.body.TaskID))
		b.out = append(b.out, `,"status":`...)
		if r := it.refusal; r != nil {
			req.API.Metrics.RefusedBeatOf(httpapi.KindTask, r)
			b.out = httpapi.AppendItemRefusal(b.out, r)
			continue
		}
		accepted++
		if it.body.ReportedMs != 0 {
			req.API.Metrics.Shared().Skew.ObserveMs(it.body.ReportedMs, it.beat.At)
		}
		b.out = append(b.out, `200,`...)
		b.out = h.appendBeat(b.out, &it.beat, it.who, req.Now, &b.stamp)
		b.out = append(b.out, '}')
		if it.beat.At.After(last) {
			last = it.beat.At
		}
		if k := it.beat.Cancel; k != nil && !k.Delivered {
			cancels = append(cancels, it.attempt)
		}
	}
	req.API.Metrics.Shared().Accepted.Add(accepted)
	if last.IsZero() {
		last = req.Now
	}
	b.out = append(b.out, `],"serverTime":`...)
	b.out = b.stamp.Append(b.out, last)
	b.out = append(b.out, '}')
	if cancels != nil {
		h.writeCancel(req.Ctx, b.out, cancels...)
		return
	}
	httpapi.WriteBody(req.Ctx, fasthttp.StatusOK, b.out)
}

// clipID returns an id for an answer; an invalid one is shortened.
func clipID(id []byte) string {
	if len(id) > model.MaxIDBytes {
		id = id[:model.MaxIDBytes]
	}
	return string(id)
}
