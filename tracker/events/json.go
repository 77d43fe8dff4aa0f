package events

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// timeLayout is how times stand on the wire.
const timeLayout = "2006-01-02T15:04:05.000Z"

// AppendJSON appends the event as it stands on the wire.
func (e *Event) AppendJSON(b []byte) []byte {
	b = append(b, `{"id":"`...)
	b = append(b, e.ID()...)
	b = append(b, `","type":"`...)
	b = append(b, e.Type...)
	b = append(b, `","time":`...)
	b = appendTime(b, e.Ms)
	for _, f := range [...]struct{ name, value string }{
		{"tenantId", e.Scope.Tenant}, {"workspaceId", e.Scope.Workspace}, {"subject", e.Subject},
	} {
		b = appendText(b, f.name, f.value)
	}
	if e.Attempt > 0 {
		b = append(b, `,"attempt":`...)
		b = strconv.AppendInt(b, int64(e.Attempt), 10)
	}
	for _, f := range [...]struct{ name, value string }{
		{"runId", e.RunID}, {"queue", e.Queue}, {"taskType", e.TaskType}, {"workerId", e.WorkerID}, {"machineId", e.MachineID},
		{"version", e.Version}, {"cause", e.Cause}, {"by", e.By},
		{"traceparent", e.Trace},
	} {
		b = appendText(b, f.name, f.value)
	}
	b = append(b, `,"data":`...)
	return append(appendData(b, e.Data), '}')
}

// appendText appends a member; what is empty is left out.
func appendText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return appendString(b, value)
}

// appendString appends a JSON string. Ids need no escapes.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			text, _ := json.Marshal(s) // of a string it does not fail
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendTime(b []byte, ms int64) []byte {
	b = time.UnixMilli(ms).UTC().AppendFormat(append(b, '"'), timeLayout)
	return append(b, '"')
}

// times are the members of data that hold a moment in wall ms as scripts write them, and their names on the wire; besides
// those that end in AtMs.
var times = map[string]string{"deadlineMs": "deadline", "fromMs": "from", "issuedBeforeMs": "issuedBefore"}

// appendData appends what scripts have written, with its times as times stand on the wire.
func appendData(b []byte, data string) []byte {
	if data == "" || data == "{}" {
		return append(b, "{}"...)
	}
	if !json.Valid([]byte(data)) || data[0] != '{' {
		return append(b, "{}"...) // another program may have written it
	}
	if !strings.Contains(data, `Ms":`) {
		return append(b, data...)
	}
	d := json.NewDecoder(strings.NewReader(data))
	_, _ = d.Token() // it begins with a brace, and is valid
	begin := byte('{')
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		_ = d.Decode(&value)
		b = appendMember(append(b, begin), name.(string), value)
		begin = ','
	}
	return append(b, '}')
}

func appendMember(b []byte, name string, value json.RawMessage) []byte {
	as, isTime := times[name]
	if at, ok := strings.CutSuffix(name, "AtMs"); ok {
		as, isTime = at+"At", true
	}
	ms, err := strconv.ParseInt(string(value), 10, 64)
	if !isTime || err != nil && string(value) != "null" {
		return append(append(appendString(b, name), ':'), value...)
	}
	b = append(appendString(b, as), ':')
	if err != nil {
		return append(b, "null"...)
	}
	return appendTime(b, ms)
}
