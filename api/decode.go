package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	v1 "github.com/lubdub-io/lubdub/api/v1"
)

// decodeStrict reads a body of the control plane into a struct of package v1. It refuses what is not one JSON
// object, fields that the struct does not have (by exact name, unlike encoding/json), and empty ids.
func decodeStrict(body []byte, v any) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	s := scanner{b: body}
	if r := checkFields(&s, reflect.TypeOf(v).Elem(), "", false); r != nil {
		return r
	}
	return unmarshal(body, v)
}

// decodeLenient reads a callback's body; fields that the struct does not have are skipped, empty ids refused.
func decodeLenient(body []byte, v any) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	s := scanner{b: body}
	if r := checkFields(&s, reflect.TypeOf(v).Elem(), "", true); r != nil {
		return r
	}
	return unmarshal(body, v)
}

func invalidJSON(format string, args ...any) *refusal {
	return refuse(fasthttp.StatusBadRequest, v1.CodeInvalidJSON, fmt.Sprintf(format, args...))
}

// checkJSON refuses a body that is not exactly one JSON object in UTF-8, and says where it goes wrong.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return errNotUTF8
	}
	s := scanner{b: body}
	switch c := s.peek(); {
	case len(body) == s.i:
		return invalidJSON("The body is empty; send a JSON object")
	case !s.skip():
		return invalidJSON("The body is not valid JSON: it goes wrong at byte %d", s.i+1)
	case !s.end():
		return invalidJSON("Something follows the JSON value, from byte %d on; send one object and nothing else", s.i+1)
	case c != '{':
		return errNotObject
	}
	return nil
}

var (
	errNotUTF8   = invalidJSON("The body is not valid UTF-8")
	errNotObject = invalidJSON("The body is JSON, but not an object; send {…}")
)

func unmarshal(body []byte, v any) error {
	err := json.Unmarshal(body, v)
	if err == nil {
		return nil
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		field := wireField(kind.Field)
		return invalidField(field, fmt.Sprintf("%s is a JSON %s; it must be %s", field, kind.Value, kindName(kind.Type)))
	}
	return invalidJSON("The body does not fit: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// wireField takes the names of embedded structs out of a path of encoding/json: ours on the wire begin with a
// lower-case letter.
func wireField(path string) string {
	parts := strings.Split(path, ".")
	kept := parts[:0]
	for _, p := range parts {
		if p == "" || p[0] < 'A' || p[0] > 'Z' {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ".")
}

// kindName says what a field wants in words of JSON.
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

// checkFields walks over a valid JSON value along a type. Lenient, it skips what the type does not have.
func checkFields(s *scanner, t reflect.Type, path string, lenient bool) *refusal {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c := s.peek()
	switch {
	case c == '{' && t.Kind() == reflect.Struct && t != reflect.TypeFor[v1.Time]():
		fields := fieldsOf(t)
		for more := s.open('{', '}'); more; more = s.more('}') {
			key, _, _ := s.str()
			name := string(unescape(key))
			s.next(':')
			sub := name
			if path != "" {
				sub = path + "." + name
			}
			ft, known := fields[name]
			if !known && lenient {
				s.skip()
				continue
			}
			if !known {
				r := refuse(fasthttp.StatusBadRequest, v1.CodeUnknownField,
					sub+" is not a field of this request; check its spelling (upper and lower case count), or leave it out")
				r.body.Field = sub
				return r
			}
			if isID(name) && s.peek() == '"' && bytes.HasPrefix(s.b[s.i:], []byte(`""`)) {
				return invalidID(sub)
			}
			if r := checkFields(s, ft, sub, lenient); r != nil {
				return r
			}
		}
		s.close('}')
		return nil
	case c == '[' && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		i := 0
		for more := s.open('[', ']'); more; more = s.more(']') {
			if r := checkFields(s, t.Elem(), fmt.Sprintf("%s[%d]", path, i), lenient); r != nil {
				return r
			}
			i++
		}
		s.close(']')
		return nil
	}
	s.skip()
	return nil
}

// isID tells by its name whether a field is an id, which may be left out but not be empty.
func isID(name string) bool {
	return strings.HasSuffix(name, "Id") || name == "queue" || name == "type" || name == "runtime"
}

var fieldCache sync.Map // reflect.Type → map[string]reflect.Type

// fieldsOf gives a struct's fields by their JSON names, those of embedded structs included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if m, ok := fieldCache.Load(t); ok {
		return m.(map[string]reflect.Type)
	}
	m := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			m[name] = f.Type
		}
	}
	fieldCache.Store(t, m)
	return m
}
