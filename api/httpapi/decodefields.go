package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/internal/jsonscan"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// fieldCheck compares a valid JSON value with a type, and refuses what does not fit.
type fieldCheck struct {
	jsonscan.Scanner
	lenient bool     // skip fields that the type does not have
	skipped [][2]int // positions of the names of those fields
}

func (c *fieldCheck) value(t reflect.Type, path string) *Refusal {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch first := c.Peek(); {
	case t == rawMessage || t == timeOfDay && first == '"':
		c.Skip()
		return nil
	case first == 'n':
		c.Skip() // as if it were absent
		return nil
	case first != firstByte(t) && !(firstByte(t) == '0' && isNumber(first)) && !(firstByte(t) == 't' && first == 'f'):
		return wrongKind(path, kindOf(first), t)
	}
	switch {
	case t == timeOfDay:
		c.Skip()
	case t.Kind() == reflect.Struct:
		return c.object(t, path)
	case t.Kind() == reflect.Slice:
		return c.array(t.Elem(), path)
	case t.Kind() == reflect.Map:
		return c.dictionary(t.Elem(), path)
	default:
		c.Skip()
	}
	return nil
}

// object checks the fields of a struct.
func (c *fieldCheck) object(t reflect.Type, path string) *Refusal {
	fields := fieldsOf(t)
	seen := uint64(0)
	for more := c.Open('{', '}'); more; more = c.More('}') {
		start := c.Pos
		name := c.name()
		f, known := fields[string(name)]
		if !known && c.lenient {
			c.skipped = append(c.skipped, [2]int{start, c.Pos})
			c.Next(':')
			c.Skip()
			continue
		}
		c.Next(':')
		switch sub := join(path, string(name)); {
		case !known:
			return unknownField(sub)
		case seen&f.bit != 0:
			return DuplicateField(sub)
		case f.id && c.emptyString():
			return InvalidID(sub)
		case f.narrows && c.emptyString():
			return emptyField(sub)
		case f.typ == rawMessage:
			if r := c.rawJSON(sub); r != nil {
				return r
			}
		default:
			if r := c.value(f.typ, sub); r != nil {
				return r
			}
		}
		seen |= f.bit
	}
	c.Close('}')
	return nil
}

// rawJSON checks a value that is stored as raw JSON.
func (c *fieldCheck) rawJSON(path string) *Refusal {
	c.Space()
	from := c.Pos
	c.Skip()
	if err := model.CheckDepth(path, c.Text[from:c.Pos]); err != nil {
		return RefusalOf("decode", err)
	}
	return nil
}

func (c *fieldCheck) array(t reflect.Type, path string) *Refusal {
	i := 0
	for more := c.Open('[', ']'); more; more = c.More(']') {
		if r := c.value(t, fmt.Sprintf("%s[%d]", path, i)); r != nil {
			return r
		}
		i++
	}
	c.Close(']')
	return nil
}

// dictionary checks an object whose keys are the client's.
func (c *fieldCheck) dictionary(t reflect.Type, path string) *Refusal {
	seen := map[string]bool{}
	for more := c.Open('{', '}'); more; more = c.More('}') {
		name := string(c.name())
		c.Next(':')
		sub := join(path, Clip(name))
		if seen[name] {
			return DuplicateField(sub)
		}
		seen[name] = true
		if r := c.value(t, sub); r != nil {
			return r
		}
	}
	c.Close('}')
	return nil
}

// name reads a key.
func (c *fieldCheck) name() []byte {
	c.Space()
	lit, escaped, _ := c.Str()
	return jsonscan.Unquote(lit, escaped)
}

func (c *fieldCheck) emptyString() bool {
	return c.Peek() == '"' && bytes.HasPrefix(c.Text[c.Pos:], []byte(`""`))
}

// hidden returns the value with skipped names changed so that they match no field.
func (c *fieldCheck) hidden() []byte {
	if c.skipped == nil {
		return c.Text
	}
	b := bytes.Clone(c.Text)
	for _, at := range c.skipped {
		lit := bytes.TrimLeft(b[at[0]:at[1]], " \t\r\n")
		for i := range jsonscan.Unquote(lit, false) {
			lit[i+1] = ' '
		}
	}
	return b
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func unknownField(field string) *Refusal {
	r := NewRefusal(fasthttp.StatusBadRequest, v1.CodeUnknownField,
		Clip(field)+" is not a field of this request; check the spelling (names are case-sensitive), or omit it")
	r.Body.Field = Clip(field)
	return r
}

// DuplicateField refuses a duplicate field.
func DuplicateField(field string) *Refusal {
	return InvalidField(field, field+" occurs twice; send it once")
}

func wrongKind(field, got string, want reflect.Type) *Refusal {
	if want == timeOfDay && got == "string" {
		return InvalidField(field, field+" is not a time as RFC 3339 has it; write it like 2025-01-15T10:05:00Z")
	}
	return InvalidField(field, fmt.Sprintf("%s is a JSON %s; it must be %s", field, got, kindName(want)))
}

var (
	rawMessage = reflect.TypeFor[json.RawMessage]()
	timeOfDay  = reflect.TypeFor[v1.Time]()
)

// firstByte returns the byte with which a value of the type begins.
func firstByte(t reflect.Type) byte {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		if t == timeOfDay {
			return '"'
		}
		return '{'
	case reflect.Slice:
		return '['
	case reflect.String:
		return '"'
	case reflect.Bool:
		return 't'
	}
	return '0'
}

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// kindOf names the kind of a value as encoding/json does.
func kindOf(first byte) string {
	switch first {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	}
	return "number"
}

// emptyField refuses an empty string in a field that means "all" when it is absent.
func emptyField(field string) *Refusal {
	return InvalidField(field, field+" is empty; name one, or omit it")
}

// bodyField is a field of a struct.
type bodyField struct {
	typ     reflect.Type
	bit     uint64 // identifies the field
	id      bool   // may be absent but not empty
	narrows bool   // the same, for text that is not an id
}

// narrowing are the structs in which each field narrows a selection. An empty field, as from an unset variable, would select more than
// was intended.
var narrowing = map[reflect.Type]bool{
	reflect.TypeFor[v1.TaskSelector](): true, reflect.TypeFor[v1.WorkerSelector](): true, reflect.TypeFor[v1.WebhookFilter](): true,
	reflect.TypeFor[v1.RevokeTokensRequest](): true, reflect.TypeFor[v1.CreateTasksItem](): true,
}

// owner returns the struct that declares a field of t, which may be embedded.
func owner(t reflect.Type, f reflect.StructField) reflect.Type {
	if last := len(f.Index) - 1; last > 0 {
		return t.FieldByIndex(f.Index[:last]).Type
	}
	return t
}

// isID reports by its name whether a field is an id.
func isID(name string) bool {
	return strings.HasSuffix(name, "Id") || name == "queue" || name == "type" || name == "runtime"
}

var fieldCache sync.Map // reflect.Type → map[string]bodyField

// fieldsOf returns a struct's fields, at most 64, by their JSON names, including those of embedded structs.
func fieldsOf(t reflect.Type) map[string]bodyField {
	if m, ok := fieldCache.Load(t); ok {
		return m.(map[string]bodyField)
	}
	m := map[string]bodyField{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		if len(m) == 64 {
			panic(t.String() + " has more than 64 fields")
		}
		m[name] = bodyField{typ: f.Type, bit: 1 << len(m), id: isID(name), narrows: narrowing[owner(t, f)]}
	}
	fieldCache.Store(t, m)
	return m
}
