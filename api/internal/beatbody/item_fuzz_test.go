package beatbody

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// An inventory is decoded entry by entry as a heartbeat is.
func FuzzItems(f *testing.F) {
	for _, entry := range []string{`{"taskId":"a","attempt":1}`, `{"taskId":"a","attempt":1,"progressPct":50,"message":"x\ty"}`, `null`, `{}`,
		`{"attempt":0,"taskId":"-"}`} {
		f.Add([]byte(entry))
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		if !json.Valid(entry) {
			return // the body was read as JSON before
		}
		items, err := Items("tasks", []json.RawMessage{entry})
		if err == nil && (len(items) != 1 || !model.ValidID(items[0].TaskID) || items[0].Number < 1 ||
			strings.Count(items[0].Report, "\t") != 0 && strings.Count(items[0].Report, "\t") != 3) {
			t.Fatalf("%q became %+v", entry, items)
		}
	})
}
