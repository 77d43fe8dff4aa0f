package api

import (
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// beatBody is one decoded beat, of POST …/heartbeat or an item of POST /v1/heartbeats. Its slices borrow the
// body (or buffers of the decoder's slow paths) and are empty when the field is absent or null.
type beatBody struct {
	attempt    int
	reportedMs int64
	worker     []byte
	pct        []byte // a JSON number
	message    []byte // a JSON string literal, not longer than tracker.MaxMessageBytes

	taskID    []byte // items only
	taskToken []byte // items only

	seen, bad    beatField
	named, twice beatField // said at all, and more than once
}

// beatField is a set of fields.
type beatField uint8

const (
	fieldAttempt beatField = 1 << iota
	fieldWorkerID
	fieldHeartbeatAt
	fieldProgressPct
	fieldMessage
	fieldTaskID
	fieldTaskToken
)

// beatFields are the fields' names, by bit.
var beatFields = [...]string{"attempt", "workerId", "heartbeatAt", "progressPct", "message", "taskId", "taskToken"}

// String names the first field of the set.
func (f beatField) String() string { return beatFields[bits.TrailingZeros8(uint8(f))] }

// decodeBeat decodes the body of a single beat. It returns false when the body is not one JSON object; check says what is wrong
// with a field.
func decodeBeat(body []byte, b *beatBody) bool {
	s := jsonscan.Scanner{Text: body}
	return b.decode(&s, false) && s.End()
}

// decode takes one object. Unknown fields are skipped.
func (b *beatBody) decode(s *jsonscan.Scanner, item bool) bool {
	*b = beatBody{}
	if s.Peek() != '{' {
		return false
	}
	for more := s.Open('{', '}'); more; more = s.More('}') {
		name, ok := s.Name()
		if !ok {
			return false
		}
		field := fieldOf(name, item)
		if field == 0 {
			ok = s.Skip()
		} else {
			ok = b.take(s, field)
		}
		if !ok {
			return false
		}
	}
	return s.Close('}')
}

func fieldOf(name []byte, item bool) beatField {
	switch string(name) {
	case "attempt":
		return fieldAttempt
	case "workerId":
		return fieldWorkerID
	case "heartbeatAt":
		return fieldHeartbeatAt
	case "progressPct":
		return fieldProgressPct
	case "message":
		return fieldMessage
	case "taskId":
		if item {
			return fieldTaskID
		}
	case "taskToken":
		if item {
			return fieldTaskToken
		}
	}
	return 0
}

// take reads the value of one field. A value of the wrong kind marks the field bad.
func (b *beatBody) take(s *jsonscan.Scanner, f beatField) bool {
	b.twice |= b.named & f
	b.named |= f
	b.seen |= f
	b.bad &^= f
	if s.Null() {
		b.seen &^= f
		switch f {
		case fieldWorkerID:
			b.worker = nil
		case fieldHeartbeatAt:
			b.reportedMs = 0
		case fieldProgressPct:
			b.pct = nil
		case fieldMessage:
			b.message = nil
		case fieldTaskID:
			b.taskID = nil
		case fieldTaskToken:
			b.taskToken = nil
		}
		return true
	}
	if f == fieldAttempt || f == fieldProgressPct {
		if c := s.Peek(); c != '-' && (c < '0' || c > '9') {
			b.bad |= f
			return s.Skip()
		}
		lit, ok := s.Number()
		if !ok {
			return false
		}
		if f == fieldAttempt {
			b.attempt, ok = positive(lit)
		} else {
			b.pct, ok = percentage(lit)
		}
		if !ok {
			b.bad |= f
		}
		return true
	}
	if s.Peek() != '"' {
		b.bad |= f
		return s.Skip()
	}
	lit, escaped, ok := s.Str()
	if !ok {
		return false
	}
	if f == fieldMessage {
		b.message = jsonscan.Truncate(lit, model.MaxMessageBytes)
		return true
	}
	text := jsonscan.Unquote(lit, escaped)
	switch f {
	case fieldWorkerID:
		b.worker, ok = text, model.ValidID(text)
	case fieldHeartbeatAt:
		b.reportedMs, ok = jsonscan.ParseTime(text)
		b.reportedMs = max(b.reportedMs, 0) // before 1970 is as good as not said
	case fieldTaskID:
		b.taskID, ok = text, model.ValidID(text)
	case fieldTaskToken:
		b.taskToken = text
	}
	if !ok {
		b.bad |= f
	}
	return true
}

// positive reads an integer from 1 to 2³¹-1.
func positive(lit []byte) (int, bool) {
	if len(lit) > 10 {
		return 0, false
	}
	n, ok := jsonscan.Digits(lit) // a sign, a fraction or an exponent is no digit
	return n, ok && n >= 1 && n <= math.MaxInt32
}

// percentage checks that a JSON number lies in 0 to 100 and returns it as sent, or rewritten when it is longer than any sensible
// number.
func percentage(lit []byte) ([]byte, bool) {
	if len(lit) <= 2 && lit[0] != '-' { // most are
		return lit, true
	}
	f, err := strconv.ParseFloat(unsafe.String(&lit[0], len(lit)), 64)
	if err != nil || f < 0 || f > 100 {
		return nil, false
	}
	if len(lit) > 24 || lit[0] == '-' {
		lit = strconv.AppendFloat(make([]byte, 0, 24), f+0, 'g', -1, 64)
	}
	return lit, true
}

// check returns the refusal of the first wrong field, nil when all is well.
func (b *beatBody) check() *refusal {
	switch {
	case b.twice != 0:
		return saidTwice(b.twice.String())
	case b.bad&fieldTaskID != 0:
		return invalidID("taskId")
	case b.bad&fieldTaskToken != 0:
		return invalidField("taskToken", "taskToken is not a string")
	case b.bad&fieldAttempt != 0:
		return invalidField("attempt", "attempt is not an integer of 1 or more; send the attempt of the task's envelope")
	case b.seen&fieldAttempt == 0:
		return invalidField("attempt", "attempt is missing; send the attempt of the task's envelope")
	case b.bad&fieldWorkerID != 0:
		return invalidID("workerId")
	case b.bad&fieldHeartbeatAt != 0:
		return invalidField("heartbeatAt", "heartbeatAt is not an RFC 3339 time such as 2025-01-15T10:05:00Z; "+
			"leave it out to let the time of receipt count")
	case b.bad&fieldProgressPct != 0:
		return invalidField("progressPct", "progressPct is not a number from 0 to 100")
	case b.bad&fieldMessage != 0:
		return invalidField("message", "message is not a string")
	}
	return nil
}

// read decodes the body of a single beat and judges it.
func (b *beatBody) read(body []byte) *refusal {
	if !utf8.Valid(body) {
		return errNotUTF8
	}
	if !decodeBeat(body, b) {
		return syntaxOf(body)
	}
	return b.check()
}

// appendReport appends the report of the beat, as it is stored.
func (b *beatBody) appendReport(dst []byte) []byte {
	return schema.AppendReport(dst, b.reportedMs, b.worker, b.pct, b.message)
}

// syntaxOf explains why a body did not decode.
func syntaxOf(body []byte) *refusal {
	if err := checkJSON(body); err != nil {
		return err.(*refusal)
	}
	return errNotObject // decodeBeat and checkJSON agree; a fuzz test holds that
}
