package stats

import (
	"encoding/json"
	"testing"
)

// During an upgrade, settings that only one of the two releases has do not count as different between replicas.
func TestSettingsOfOneReleaseDoNotDiffer(t *testing.T) {
	own := Facts{Settings: map[string]string{"redis": "0001", "shards": "0002", "new": "0003"}}
	others, differ := Compare(own, []json.RawMessage{json.RawMessage(`{"Settings":{"redis":"0001","shards":"0009","removed":"0004"}}`)})
	if others != 1 || len(differ) != 1 || differ[0] != "shards" {
		t.Errorf("%d others, and %v differ", others, differ)
	}
}
