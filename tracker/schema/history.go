package schema

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// HistoryError returns an error object as the history stores it: unchanged when it is short, else its standard fields with their texts cut.
func HistoryError(whole json.RawMessage) string {
	if len(whole) <= model.MaxHistoryError {
		return string(whole)
	}
	var e struct {
		Category   string `json:"category,omitempty"`
		Message    string `json:"message,omitempty"`
		StackTrace string `json:"stackTrace,omitempty"`
		Retryable  *bool  `json:"retryable,omitempty"`
	}
	Unmarshal(string(whole), &e)
	const around = 256 // bytes of everything but message and stack trace
	e.Category = model.Clip(e.Category)
	e.Message = cutText(e.Message, (model.MaxHistoryError-around)/2)
	e.StackTrace = cutText(e.StackTrace, model.MaxHistoryError-around-jsonLen(e.Message))
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(e) // strings and a bool: cannot fail
	return string(bytes.TrimSpace(b.Bytes()))
}

// cutText returns the part of a text that fits into a number of bytes of JSON, without splitting characters.
func cutText(s string, limit int) string {
	size := 0
	for i, r := range s {
		if size += runeJSONLen(r); size > limit {
			return s[:i]
		}
	}
	return s
}

func jsonLen(s string) (n int) {
	for _, r := range s {
		n += runeJSONLen(r)
	}
	return n
}

// runeJSONLen returns the largest length of a character in JSON.
func runeJSONLen(r rune) int {
	switch {
	case r == '"' || r == '\\':
		return 2
	case r < 0x20 || r == '\u2028' || r == '\u2029':
		return 6
	}
	return utf8.RuneLen(r)
}

// HistoryMetrics returns metrics as an attempt's history stores them: unchanged, or if they are too large, the first members that fit into
// MaxHistoryMetrics.
func HistoryMetrics(metrics json.RawMessage) string {
	if len(metrics) <= model.MaxHistoryMetrics {
		return string(metrics)
	}
	d := json.NewDecoder(bytes.NewReader(metrics))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return ""
	}
	fitting := []byte{'{'}
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
		if len(fitting)+len(member)+len(value)+len(",:}") > model.MaxHistoryMetrics {
			continue
		}
		if len(fitting) > 1 {
			fitting = append(fitting, ',')
		}
		fitting = append(append(append(fitting, member...), ':'), value...)
	}
	return string(append(fitting, '}'))
}
