package api

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// slowBeat decodes a beat with encoding/json alone: what the hand-written decoder must agree with.
type slowBeat struct {
	attempt    int
	reportedMs int64
	worker     string
	pct        float64
	hasPct     bool
	message    string
	hasMessage bool
}

// saysTwice reports whether a valid object has one of the members twice.
func saysTwice(object []byte, names ...string) bool {
	d := json.NewDecoder(bytes.NewReader(object))
	seen := map[any]int{}
	for _, _ = d.Token(); d.More(); {
		name, _ := d.Token()
		var value json.RawMessage
		_ = d.Decode(&value)
		seen[name]++
	}
	return slices.ContainsFunc(names, func(name string) bool { return seen[name] > 1 })
}

func decodeSlow(body []byte) (b slowBeat, ok bool) {
	if !utf8.Valid(body) {
		return b, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil || saysTwice(body, "attempt", "workerId", "heartbeatAt", "progressPct",
		"message") {
		return b, false
	}
	get := func(name string, v any) (there, ok bool) {
		raw, there := fields[name]
		if !there || string(raw) == "null" {
			return false, true
		}
		return true, json.Unmarshal(raw, v) == nil
	}
	if there, ok := get("attempt", &b.attempt); !ok || !there || b.attempt < 1 || b.attempt > math.MaxInt32 {
		return b, false
	}
	if there, ok := get("workerId", &b.worker); !ok || there && !model.ValidID(b.worker) {
		return b, false
	}
	var at v1.Time
	if there, ok := get("heartbeatAt", &at); !ok {
		return b, false
	} else if there {
		b.reportedMs = max(at.UnixMilli(), 0)
	}
	var pct float64
	if b.hasPct, ok = get("progressPct", &pct); !ok || pct < 0 || pct > 100 {
		return b, false
	}
	b.pct = pct
	if b.hasMessage, ok = get("message", &b.message); !ok {
		return b, false
	}
	return b, true
}

var beatSeeds = []string{
	`{"attempt":1,"workerId":"worker-abc123","heartbeatAt":"2025-01-15T10:05:00Z","progressPct":45,"message":"Processing partition 5 of 10"}`,
	`{"attempt":1}`, ` { "attempt" : 12 } `, `{"attempt":1,"attempt":2}`, `{"attempt":"x","attempt":2}`, `{"attempt":2,"attempt":null}`,
	`{"\u0061ttempt":7}`, `{"Attempt":7}`, `{"attempt":1.0}`, `{"attempt":1e0}`, `{"attempt":0}`, `{"attempt":-1}`,
	`{"attempt":99999999999999999999}`,
	`{"attempt":2147483647}`, `{"attempt":2147483648}`, `{"attempt":01}`,
	`{"attempt":1,"progressPct":0.5e1}`, `{"attempt":1,"progressPct":-0}`, `{"attempt":1,"progressPct":100.0000000000000000000000000001}`,
	`{"attempt":1,"progressPct":1e400}`, `{"attempt":1,"progressPct":1e-400}`, `{"attempt":1,"progressPct":101}`,
	`{"attempt":1,"progressPct":"5"}`, `{"attempt":1,"progressPct":-1}`,
	`{"attempt":1,"message":"\ud83d\ude00 \u00e9 \n \"x\""}`, `{"attempt":1,"message":"\ud800"}`, "{\"attempt\":1,\"message\":\"a\tb\"}",
	`{"attempt":1,"message":5}`, `{"attempt":1,"message":""}`,
	`{"attempt":1,"heartbeatAt":"2025-02-29T00:00:00Z"}`, `{"attempt":1,"heartbeatAt":"2024-02-29T23:59:59.123456789+05:30"}`,
	`{"attempt":1,"heartbeatAt":"2025-01-15T10:05:00,5Z"}`,
	`{"attempt":1,"heartbeatAt":"2025-01-15t10:05:00z"}`, `{"attempt":1,"heartbeatAt":"2025-01-15T10:05:60Z"}`,
	`{"attempt":1,"heartbeatAt":"1969-01-15T10:05:00Z"}`, `{"attempt":1,"heartbeatAt":"2025-01-15T1:05:00Z"}`,
	`{"attempt":1,"heartbeatAt":"2025-01-15T10:05:00+24:00"}`, `{"attempt":1,"heartbeatAt":"2025-01-15T10:05:00.Z"}`,
	`{"attempt":1,"heartbeatAt":"2025-01-15T10:05:00"}`,
	`{"attempt":1,"workerId":""}`, `{"attempt":1,"workerId":"-x"}`, `{"attempt":1,"workerId":"\u0061"}`, `{"attempt":1,"workerId":null}`,
	`{"attempt":1,"x":[1,{"y":[]},"z",null,true,false,-1.5E+3]}`, `{"attempt":1,"x":[1,]}`, `{"attempt":1,}`, `{"attempt":1} x`,
	`{"attempt":1}{}`, `[]`, `null`, ``, `{`, `{"attempt"`, `{"attempt":`, `{"attempt":tru}`,
	`{"attempt":1,"x":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`,
	`{"attempt":1,"x":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`,
	"{\"attempt\":1,\"message\":\"\xff\"}", `{"attempt":1,"message":"\u12"}`, `{"attempt":1,"message":"\x"}`,
}

func checkBeat(t *testing.T, body []byte) {
	t.Helper()
	var fast beatBody
	ok := utf8.Valid(body) && decodeBeat(body, &fast) && fast.check() == nil
	slow, slowOK := decodeSlow(body)
	if ok != slowOK {
		t.Fatalf("accepted %v, encoding/json %v: %q", ok, slowOK, body)
	}
	if !ok {
		if utf8.Valid(body) && !decodeBeat(body, &fast) && checkJSON(body) == nil {
			t.Fatalf("refused as no JSON object, but it is one: %q", body)
		}
		return
	}
	if fast.attempt != slow.attempt || fast.reportedMs != slow.reportedMs || string(fast.worker) != slow.worker {
		t.Fatalf("%q: got %+v, want %+v", body, fast, slow)
	}
	if (fast.pct != nil) != slow.hasPct || (fast.message != nil) != slow.hasMessage {
		t.Fatalf("%q: presence differs: %q %q, want %v %v", body, fast.pct, fast.message, slow.hasPct, slow.hasMessage)
	}
	if slow.hasPct {
		if got, err := strconv.ParseFloat(string(fast.pct), 64); err != nil || got != slow.pct || !json.Valid(fast.pct) {
			t.Fatalf("%q: progress %q, want %v", body, fast.pct, slow.pct)
		}
	}
	if slow.hasMessage {
		var got string
		if err := json.Unmarshal(fast.message, &got); err != nil {
			t.Fatalf("%q: message %q: %v", body, fast.message, err)
		}
		if len(fast.message) > model.MaxMessageBytes || !strings.HasPrefix(slow.message, got) {
			t.Fatalf("%q: message %q is no beginning of %q", body, got, slow.message)
		}
		if got != slow.message && len(fast.message) < model.MaxMessageBytes-12 {
			t.Fatalf("message cut to %d bytes without need", len(fast.message))
		}
	}
	if bytes.IndexByte(fast.message, '\t') >= 0 || bytes.IndexByte(fast.pct, '\t') >= 0 {
		t.Fatalf("%q: a tab would tear the packed report", body)
	}
}

func TestDecodeBeatAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range beatSeeds {
		checkBeat(t, []byte(s))
	}
}

func FuzzDecodeBeat(f *testing.F) {
	for _, s := range beatSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(checkBeat)
}

// The batch's decoder must find the same items as encoding/json, each with the same fate.
func FuzzDecodeBatch(f *testing.F) {
	for _, s := range beatSeeds {
		f.Add([]byte(`{"heartbeats":[` + s + `]}`))
	}
	for _, s := range []string{
		`{}`, `{"heartbeats":null}`, `{"heartbeats":[]}`, `{"heartbeats":[{},{}],"heartbeats":[{}]}`, `{"heartbeats":[{}],"heartbeats":1}`,
		`{"heart\u0062eats":[{}]}`,
		`{"heartbeats":[{"attempt":1,"taskId":"a","taskToken":"\u0078"},{"taskId":5},{"taskId":null,"taskToken":null}],"x":[]}`,
		`{"heartbeats":[{},5]}`, `{"heartbeats":[{}]} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var b batchRequest
		err := b.decode(body)
		var fields map[string]json.RawMessage
		var items []json.RawMessage
		ok := utf8.Valid(body) && json.Unmarshal(body, &fields) == nil && fields != nil && json.Unmarshal(fields["heartbeats"], &items) == nil &&
			len(items) >= 1 && len(items) <= maxBatch
		for _, it := range items {
			ok = ok && it[0] == '{'
		}
		ok = ok && !saysTwice(body, "heartbeats")
		if ok != (err == nil) {
			t.Fatalf("got %v, encoding/json %v: %q", err, ok, body)
		}
		if !ok {
			return
		}
		if len(b.items) != len(items) {
			t.Fatalf("%d items, want %d: %q", len(b.items), len(items), body)
		}
		for i, it := range items {
			var own map[string]json.RawMessage
			if json.Unmarshal(it, &own) != nil {
				t.Fatal("an item that is no object")
			}
			_, single := decodeSlow(it)
			single = single && !saysTwice(it, "taskId", "taskToken")
			var id, token string
			idOK, tokenOK := json.Unmarshal(orNullRaw(own["taskId"]), &id) == nil, json.Unmarshal(orNullRaw(own["taskToken"]), &token) == nil
			got := &b.items[i].body
			if idOK = idOK && (id == "" && string(orNullRaw(own["taskId"])) == "null" || model.ValidID(id)); (got.check() == nil) != (single &&
				idOK && tokenOK) {
				t.Fatalf("item %d: %v, encoding/json %v %v %v: %q", i, got.check(), single, idOK, tokenOK, body)
			}
			if idOK && tokenOK && (string(got.taskID) != id || string(got.taskToken) != token) {
				t.Fatalf("item %d: %q %q, want %q %q", i, got.taskID, got.taskToken, id, token)
			}
		}
	})
}

func orNullRaw(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func TestLongMessagesAreCutWhole(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"plain": "x", "two bytes": "é", "four bytes": "😀", "escape": `\n`, "unicode escape": `\u00e9`, "surrogates": `\ud83d\ude00`,
		"lone surrogate": `\ud83d`,
	} {
		t.Run(name, func(t *testing.T) {
			for pad := range 13 {
				lit := `"` + strings.Repeat("a", pad) + strings.Repeat(unit, 1100) + `"`
				checkBeat(t, []byte(`{"attempt":1,"message":`+lit+`}`))
			}
		})
	}
}
