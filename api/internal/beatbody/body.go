package beatbody

import (
	"bytes"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/schema"
)

// Body is the decoded body of a POST …/heartbeat or an item of POST /v1/heartbeats. Its slices point into the body (or into buffers
// for escaped text) and are empty if the field is absent or null.
type Body struct {
	Attempt    int
	ReportedMs int64
	worker     []byte
	Pct        []byte // a JSON number
	Message    []byte // a JSON string literal, not longer than tracker.MaxMessageBytes
	Details    []byte // compact JSON

	TaskID    []byte // items only
	TaskToken []byte // items only

	Seen, Bad    Field
	named, Twice Field // fields that are present, and present more than once
}

// Field is a set of fields.
type Field uint8

const (
	fieldAttempt Field = 1 << iota
	fieldWorkerID
	fieldHeartbeatAt
	fieldProgressPct
	fieldMessage
	fieldDetails
	FieldTaskID
	FieldTaskToken
)

// beatFields contains the fields' names, by bit.
var beatFields = [...]string{"attempt", "workerId", "heartbeatAt", "progressPct", "message", "details", "taskId", "taskToken"}

// String names the first field of the set.
func (f Field) String() string { return beatFields[bits.TrailingZeros8(uint8(f))] }

// decodeBeat decodes the body of a single beat. It returns false if the body is not one JSON object; Check reports invalid fields.
func decodeBeat(body []byte, b *Body) bool {
	s := jsonscan.Scanner{Text: body}
	return b.Decode(&s, false) && s.End()
}

// Decode decodes one object. Unknown fields are skipped.
func (b *Body) Decode(s *jsonscan.Scanner, item bool) bool {
	*b = Body{}
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

func fieldOf(name []byte, item bool) Field {
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
	case "details":
		return fieldDetails
	case "taskId":
		if item {
			return FieldTaskID
		}
	case "taskToken":
		if item {
			return FieldTaskToken
		}
	}
	return 0
}

// take decodes the value of one field. A value of the wrong kind marks the field as bad.
func (b *Body) take(s *jsonscan.Scanner, f Field) bool {
	b.Twice |= b.named & f
	b.named |= f
	b.Seen |= f
	b.Bad &^= f
	if s.Null() {
		b.Seen &^= f
		switch f {
		case fieldWorkerID:
			b.worker = nil
		case fieldHeartbeatAt:
			b.ReportedMs = 0
		case fieldProgressPct:
			b.Pct = nil
		case fieldMessage:
			b.Message = nil
		case fieldDetails:
			b.Details = nil
		case FieldTaskID:
			b.TaskID = nil
		case FieldTaskToken:
			b.TaskToken = nil
		}
		return true
	}
	if f == fieldDetails {
		return b.takeDetails(s)
	}
	if f == fieldAttempt || f == fieldProgressPct {
		if c := s.Peek(); c != '-' && (c < '0' || c > '9') {
			b.Bad |= f
			return s.Skip()
		}
		lit, ok := s.Number()
		if !ok {
			return false
		}
		if f == fieldAttempt {
			b.Attempt, ok = positive(lit)
		} else {
			b.Pct, ok = percentage(lit)
		}
		if !ok {
			b.Bad |= f
		}
		return true
	}
	if s.Peek() != '"' {
		b.Bad |= f
		return s.Skip()
	}
	lit, escaped, ok := s.Str()
	if !ok {
		return false
	}
	if f == fieldMessage {
		b.Message = jsonscan.Truncate(lit, model.MaxMessageBytes)
		return true
	}
	text := jsonscan.Unquote(lit, escaped)
	switch f {
	case fieldWorkerID:
		b.worker, ok = text, model.ValidID(text)
	case fieldHeartbeatAt:
		b.ReportedMs, ok = jsonscan.ParseTime(text)
		b.ReportedMs = max(b.ReportedMs, 0) // before 1970 counts as not reported
	case FieldTaskID:
		b.TaskID, ok = text, model.ValidID(text)
	case FieldTaskToken:
		b.TaskToken = text
	}
	if !ok {
		b.Bad |= f
	}
	return true
}

// takeDetails decodes details. Those that are too long or nested too deeply are bad.
func (b *Body) takeDetails(s *jsonscan.Scanner) bool {
	s.Space()
	start := s.Pos
	if !s.Skip() {
		return false
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, s.Text[start:s.Pos]) // it is JSON
	if b.Details = compact.Bytes(); checkDetails(b.Details) != nil {
		b.Bad |= fieldDetails
	}
	return true
}

func checkDetails(details []byte) error {
	if len(details) > model.MaxDetailsBytes {
		return model.Invalidf("details", "has %d bytes without whitespace; use at most %d, or send a reference to the data", len(details),
			model.MaxDetailsBytes)
	}
	return model.CheckDepth("details", details)
}

// positive parses an integer from 1 to 2³¹-1.
func positive(lit []byte) (int, bool) {
	if len(lit) > 10 {
		return 0, false
	}
	n, ok := jsonscan.Digits(lit) // a sign, a fraction or an exponent is not a digit
	return n, ok && n >= 1 && n <= math.MaxInt32
}

// percentage checks that a JSON number is in 0 to 100 and returns it as sent, or rewritten if it is longer than any sensible number.
func percentage(lit []byte) ([]byte, bool) {
	if len(lit) <= 2 && lit[0] != '-' { // as most are
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

// Check returns the refusal of the first invalid field, or nil.
func (b *Body) Check() *httpapi.Refusal {
	switch {
	case b.Twice != 0:
		return httpapi.DuplicateField(b.Twice.String())
	case b.Bad&FieldTaskID != 0:
		return httpapi.InvalidID("taskId")
	case b.Bad&FieldTaskToken != 0:
		return httpapi.InvalidField("taskToken", "taskToken is not a string")
	case b.Bad&fieldAttempt != 0:
		return httpapi.InvalidField("attempt", "attempt is not an integer of 1 or more; send the attempt of the task's envelope")
	case b.Seen&fieldAttempt == 0:
		return httpapi.InvalidField("attempt", "attempt is missing; send the attempt of the task's envelope")
	case b.Bad&fieldWorkerID != 0:
		return httpapi.InvalidID("workerId")
	case b.Bad&fieldHeartbeatAt != 0:
		return httpapi.InvalidField("heartbeatAt", "heartbeatAt is not an RFC 3339 time such as 2025-01-15T10:05:00Z; "+
			"omit it to let the time of receipt count")
	case b.Bad&fieldProgressPct != 0:
		return httpapi.InvalidField("progressPct", "progressPct is not a number from 0 to 100")
	case b.Bad&fieldMessage != 0:
		return httpapi.InvalidField("message", "message is not a string")
	case b.Bad&fieldDetails != 0:
		return httpapi.RefusalOf("heartbeat", checkDetails(b.Details))
	}
	return nil
}

// Read decodes the body of a single beat and checks it.
func (b *Body) Read(body []byte) *httpapi.Refusal {
	if !utf8.Valid(body) {
		return httpapi.ErrNotUTF8
	}
	if !decodeBeat(body, b) {
		return syntaxOf(body)
	}
	return b.Check()
}

// AppendReport appends the report of the beat in its stored form.
func (b *Body) AppendReport(dst []byte) []byte {
	return schema.AppendReport(dst, b.ReportedMs, b.worker, b.Pct, b.Message)
}

// KiB returns the length of details in KiB, rounded up.
func KiB[T string | []byte](details T) int { return (len(details) + 1023) / 1024 }

// syntaxOf explains why a body could not be decoded.
func syntaxOf(body []byte) *httpapi.Refusal {
	if err := httpapi.CheckJSON(body); err != nil {
		return err.(*httpapi.Refusal)
	}
	return httpapi.ErrNotObject // decodeBeat and CheckJSON agree, as a fuzz test checks
}
