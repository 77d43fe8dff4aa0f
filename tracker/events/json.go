package events

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// timeLayout is the format of times on the wire.
const timeLayout = "2006-01-02T15:04:05.000Z"

// AppendJSON appends the event in its wire format.
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

// appendText appends a member unless it is empty.
func appendText(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return appendString(b, value)
}

// appendString appends a JSON string. IDs need no escapes.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			text, _ := json.Marshal(s) // cannot fail for a string
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendTime(b []byte, ms int64) []byte {
	b = time.UnixMilli(ms).UTC().AppendFormat(append(b, '"'), timeLayout)
	return append(b, '"')
}

// times maps members of data that scripts write as wall ms to their names on the wire, except those that end in AtMs.
var times = map[string]string{"deadlineMs": "deadline", "fromMs": "from", "issuedBeforeMs": "issuedBefore"}

// appendData appends the data that scripts have written, with its times in the wire format.
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
	_, _ = d.Token() // it is valid and begins with a brace
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
