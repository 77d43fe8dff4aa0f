package beatbody

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
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

// hasDuplicate reports whether a valid object has one of the members twice.
func hasDuplicate(object []byte, names ...string) bool {
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
	if json.Unmarshal(body, &fields) != nil || fields == nil || hasDuplicate(body, "attempt", "workerId", "heartbeatAt", "progressPct",
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
	var fast Body
	ok := utf8.Valid(body) && decodeBeat(body, &fast) && fast.Check() == nil
	slow, slowOK := decodeSlow(body)
	if ok != slowOK {
		t.Fatalf("accepted %v, encoding/json %v: %q", ok, slowOK, body)
	}
	if !ok {
		if utf8.Valid(body) && !decodeBeat(body, &fast) && httpapi.CheckJSON(body) == nil {
			t.Fatalf("refused as no JSON object, but it is one: %q", body)
		}
		return
	}
	if fast.Attempt != slow.attempt || fast.ReportedMs != slow.reportedMs || string(fast.worker) != slow.worker {
		t.Fatalf("%q: got %+v, want %+v", body, fast, slow)
	}
	if (fast.Pct != nil) != slow.hasPct || (fast.Message != nil) != slow.hasMessage {
		t.Fatalf("%q: presence differs: %q %q, want %v %v", body, fast.Pct, fast.Message, slow.hasPct, slow.hasMessage)
	}
	if slow.hasPct {
		if got, err := strconv.ParseFloat(string(fast.Pct), 64); err != nil || got != slow.pct || !json.Valid(fast.Pct) {
			t.Fatalf("%q: progress %q, want %v", body, fast.Pct, slow.pct)
		}
	}
	if slow.hasMessage {
		var got string
		if err := json.Unmarshal(fast.Message, &got); err != nil {
			t.Fatalf("%q: message %q: %v", body, fast.Message, err)
		}
		if len(fast.Message) > model.MaxMessageBytes || !strings.HasPrefix(slow.message, got) {
			t.Fatalf("%q: message %q is no beginning of %q", body, got, slow.message)
		}
		if got != slow.message && len(fast.Message) < model.MaxMessageBytes-12 {
			t.Fatalf("message cut to %d bytes without need", len(fast.Message))
		}
	}
	if bytes.IndexByte(fast.Message, '\t') >= 0 || bytes.IndexByte(fast.Pct, '\t') >= 0 {
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

// The items of batches and inventories have an id and a token too.
func FuzzDecodeItem(f *testing.F) {
	for _, s := range append(slices.Clone(beatSeeds), `{"attempt":1,"taskId":"a","taskToken":"\u0078"}`, `{"taskId":5}`,
		`{"taskId":null,"taskToken":null}`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, it []byte) {
		var own map[string]json.RawMessage
		var got Body
		s := jsonscan.Scanner{Text: it}
		ok := utf8.Valid(it) && got.Decode(&s, true) && s.End()
		if want := utf8.Valid(it) && json.Unmarshal(it, &own) == nil && own != nil; ok != want {
			t.Fatalf("decoded %v, encoding/json %v: %q", ok, want, it)
		}
		if !ok {
			return
		}
		_, single := decodeSlow(it)
		single = single && !hasDuplicate(it, "taskId", "taskToken")
		var id, token string
		idOK, tokenOK := json.Unmarshal(orNullRaw(own["taskId"]), &id) == nil, json.Unmarshal(orNullRaw(own["taskToken"]), &token) == nil
		if idOK = idOK && (id == "" && string(orNullRaw(own["taskId"])) == "null" || model.ValidID(id)); (got.Check() == nil) != (single &&
			idOK && tokenOK) {
			t.Fatalf("%v, encoding/json %v %v %v: %q", got.Check(), single, idOK, tokenOK, it)
		}
		if idOK && tokenOK && (string(got.TaskID) != id || string(got.TaskToken) != token) {
			t.Fatalf("%q %q, want %q %q", got.TaskID, got.TaskToken, id, token)
		}
	})
}

func orNullRaw(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func BenchmarkDecodeBeat(b *testing.B) {
	var body Body
	raw := []byte(beatSeeds[0])
	b.ReportAllocs()
	for b.Loop() {
		if !decodeBeat(raw, &body) || body.Check() != nil {
			b.Fatal("refused")
		}
	}
}
