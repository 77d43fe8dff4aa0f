package model

import (
	"encoding/json"
	"strings"
)

// CheckLabels returns an error for labels that are too many, too long, or contain characters that lists cannot show.
func CheckLabels(field string, labels map[string]string) error {
	if len(labels) > MaxLabels {
		return Invalidf(field, "has %d entries; use at most %d", len(labels), MaxLabels)
	}
	for k, v := range labels {
		if !ValidLabelKey(k) {
			return Invalidf(field, "has the key %q; use 1 to %d letters, digits, dots, underscores, hyphens and slashes, "+
				"beginning with a letter or digit", Clip(k), MaxLabelKeyBytes)
		}
		if err := CheckText(field+"."+k, v, MaxLabelValBytes); err != nil {
			return err
		}
	}
	return nil
}

// ValidLabelKey reports whether k is a valid key of a label.
func ValidLabelKey(k string) bool {
	if k == "" || len(k) > MaxLabelKeyBytes || !ValidID(k[:1]) {
		return false
	}
	for i := 1; i < len(k); i++ {
		if !idByte[k[i]] && k[i] != '/' {
			return false
		}
	}
	return true
}

// HasLabels reports whether `have` contains all wanted labels.
func HasLabels(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// PackLabels returns labels as JSON, equal for equal labels; "" for no labels.
func PackLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	b, _ := json.Marshal(labels) // strings: cannot fail
	return string(b)
}

// PackLabel returns one label in the form that PackLabels gives it among others.
func PackLabel(key, value string) string {
	return strings.Trim(PackLabels(map[string]string{key: value}), "{}")
}
