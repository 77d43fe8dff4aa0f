package schema

import (
	"bytes"
	"encoding/json"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// KeptMetrics gives what an attempt's history keeps of its metrics: all of them, or of too many those members that come
// first and fit into MaxKeptMetrics.
func KeptMetrics(metrics json.RawMessage) string {
	if len(metrics) <= model.MaxKeptMetrics {
		return string(metrics)
	}
	d := json.NewDecoder(bytes.NewReader(metrics))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return ""
	}
	kept := []byte{'{'}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return ""
		}
		member, _ := json.Marshal(name) // a string: cannot fail
		if len(kept)+len(member)+len(value)+len(",:}") > model.MaxKeptMetrics {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(append(append(kept, member...), ':'), value...)
	}
	return string(append(kept, '}'))
}
