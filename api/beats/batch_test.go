package beats

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/beatbody"
	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
)

// The batch's decoder must find the same items as encoding/json, and read each as it reads one alone.
func FuzzDecodeBatch(f *testing.F) {
	for _, s := range []string{
		`{"heartbeats":[{"attempt":1,"message":"x","progressPct":0.5e1},{"attempt":0}]}`,
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
			len(items) >= 1 && len(items) <= httpapi.MaxBatch
		for _, it := range items {
			ok = ok && it[0] == '{'
		}
		ok = ok && !twice(body, "heartbeats")
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
			var alone beatbody.Body
			if s := (jsonscan.Scanner{Text: it}); !alone.Decode(&s, true) || !reflect.DeepEqual(b.items[i].body, alone) {
				t.Fatalf("item %d: %+v, alone %+v: %q", i, b.items[i].body, alone, body)
			}
		}
	})
}

// twice reports whether a valid object has the member twice.
func twice(object []byte, name string) bool {
	d := json.NewDecoder(bytes.NewReader(object))
	n := 0
	for _, _ = d.Token(); d.More(); {
		got, _ := d.Token()
		var value json.RawMessage
		_ = d.Decode(&value)
		if got == name {
			n++
		}
	}
	return n > 1
}
