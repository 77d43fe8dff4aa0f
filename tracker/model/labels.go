package model

import (
	"encoding/json"
	"strings"
)

// CheckLabels refuses labels that are too many, too long, or contain what cannot be written in a list.
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

// ValidLabelKey reports whether labels may have the key.
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

// HasLabels reports whether all wanted labels are there.
func HasLabels(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// PackLabels writes labels as JSON, the same for equal labels; "" when there are none.
func PackLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	b, _ := json.Marshal(labels) // strings only: cannot fail
	return string(b)
}

// PackLabel writes one label as PackLabels has it among others.
func PackLabel(key, value string) string {
	return strings.Trim(PackLabels(map[string]string{key: value}), "{}")
}
