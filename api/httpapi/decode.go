package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// decodeStrict decodes a body of the control plane into a struct of package v1. It refuses anything but one JSON object, unknown fields
// (names are case-sensitive, unlike encoding/json's), duplicate fields, values of the wrong kind, and empty ids.
func decodeStrict(body []byte, v any) error { return decode(body, v, false) }

// decodeLenient decodes a callback's body in the same way, but skips unknown fields, since workers may be newer than the server.
func decodeLenient(body []byte, v any) error { return decode(body, v, true) }

func decode(body []byte, v any, lenient bool) error {
	if err := CheckJSON(body); err != nil {
		return err
	}
	return DecodeObject("", body, v, lenient)
}

// DecodeObject decodes valid JSON that was found at a path of the body. encoding/json matches field names in any case, so skipped names
// are hidden from it.
func DecodeObject(path string, object []byte, v any, lenient bool) error {
	c := fieldCheck{Scanner: jsonscan.Scanner{Text: object}, lenient: lenient}
	if r := c.value(reflect.TypeOf(v).Elem(), path); r != nil {
		return r
	}
	return unmarshal(path, c.hidden(), v)
}

func invalidJSON(format string, args ...any) *Refusal {
	return NewRefusal(fasthttp.StatusBadRequest, v1.CodeInvalidJSON, fmt.Sprintf(format, args...))
}

// CheckJSON refuses a body that is not exactly one JSON object in UTF-8, and reports where the error is.
func CheckJSON(body []byte) error {
	if !utf8.Valid(body) {
		return ErrNotUTF8
	}
	s := jsonscan.Scanner{Text: body}
	c := s.Peek()
	if len(body) == s.Pos {
		return invalidJSON("The body is empty; send a JSON object")
	}
	switch valid := s.Skip(); {
	case !valid && s.TooDeep():
		return invalidJSON("The body is nested deeper than %d levels; use far fewer", jsonscan.MaxDepth)
	case !valid && s.Pos >= len(body):
		return invalidJSON("The body is not valid JSON: it is cut off after %d bytes", len(body))
	case !valid:
		return invalidJSON("The body is not valid JSON: the error is at byte %d", s.Pos+1)
	case !s.End():
		return invalidJSON("Something follows the JSON value, from byte %d on; send one object and nothing else", s.Pos+1)
	case c != '{':
		return ErrNotObject
	}
	return nil
}

var (
	ErrNotUTF8   = invalidJSON("The body is not valid UTF-8")
	ErrNotObject = invalidJSON("The body is JSON, but not an object; send {…}")
)

func unmarshal(path string, body []byte, v any) error {
	err := json.Unmarshal(body, v)
	if err == nil {
		return nil
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" { // a number out of range, or an invalid time
		return wrongKind(join(path, wireField(kind.Field)), kind.Value, kind.Type)
	}
	return invalidJSON("The body does not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// wireField removes the names of embedded structs from a path of encoding/json: wire names begin with a lower-case letter.
func wireField(path string) string {
	parts := strings.Split(path, ".")
	names := parts[:0]
	for _, p := range parts {
		if p == "" || p[0] < 'A' || p[0] > 'Z' {
			names = append(names, p)
		}
	}
	return strings.Join(names, ".")
}

// kindName names the JSON kind of a field's type.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	case reflect.Map:
		return "an object of strings"
	}
	if t == reflect.TypeFor[v1.Time]() {
		return "an RFC 3339 time such as 2025-01-15T10:05:00Z"
	}
	return "an object"
}
