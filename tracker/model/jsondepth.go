package model

import (
	"encoding/json"
)

// MaxJSONDepth is how deeply arrays and objects may be nested in JSON that is stored with a task. Lua and JSON readers of other languages
// have limits, and a client that cannot read a task cannot cancel it either.
const MaxJSONDepth = 100

// CheckDepth returns an error for a JSON value that is nested deeper than MaxJSONDepth. The value must be valid JSON.
func CheckDepth(field string, value json.RawMessage) error {
	if deep := jsonDepth(value); deep > MaxJSONDepth {
		return Invalidf(field, "is nested %d levels deep; use at most %d, or send it as a string", deep, MaxJSONDepth)
	}
	return nil
}

// jsonDepth returns how deeply arrays and objects are nested.
func jsonDepth(value []byte) (deepest int) {
	depth, text := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			text = !text
		case text && c == '\\':
			i++
		case text:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
