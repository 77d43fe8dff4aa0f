package model

import (
	"encoding/json"
)

func PackLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	b, _ := json.Marshal(labels) // strings only: cannot fail
	return string(b)
}
