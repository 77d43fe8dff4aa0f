package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// requestBodies are all that a client may send, by the way they are read.
var requestBodies = []struct {
	typ     any
	lenient bool
}{
	{v1.StartedRequest{}, true}, {v1.CompletedRequest{}, true}, {v1.WorkerHeartbeatRequest{}, true},
	{v1.CreateTaskRequest{}, false}, {v1.CreateTasksRequest{}, false}, {v1.CancelRequest{}, false}, {v1.NextAttemptRequest{}, false},
	{v1.CancelTasksRequest{}, false}, {v1.RetryTasksRequest{}, false},
	{v1.ClaimRequest{}, false}, {v1.ReleaseRequest{}, false}, {v1.RegisterWorkerRequest{}, false}, {v1.DeregisterRequest{}, false},
	{v1.DrainRequest{}, false}, {v1.DrainWorkersRequest{}, false}, {v1.ActOnWorkersRequest{}, false},
	{v1.OfflineWorkersRequest{}, false}, {v1.SelectWorkerRequest{}, false},
}

// Every field of every body must have its exact name and occur once: encoding/json accepts any case, and of two takes the last.
func TestNamesAreExactAndComeOnce(t *testing.T) {
	t.Parallel()
	fields := 0
	for _, body := range requestBodies {
		typ := reflect.TypeOf(body.typ)
		read := func(text string) (any, error) {
			to := reflect.New(typ).Interface()
			return to, decode([]byte(text), to, body.lenient)
		}
		eachField(typ, "", func(path, name string, t2 reflect.Type, wrap func(string) string) {
			fields++
			member := func(name string) string { return fmt.Sprintf("%q:%s", name, sampleOf(t2, 0)) }
			want, err := read(wrap(member(name)))
			if err != nil {
				t.Errorf("%v: %s alone: %v", typ, path, err)
				return
			}
			if _, err := read(wrap(member(name) + "," + member(name))); err == nil || err.(*Refusal).Status != 400 ||
				err.(*Refusal).Body.Field != path {
				t.Errorf("%v: %s twice: %v", typ, path, err)
			}
			for _, other := range misspelt(name) {
				got, err := read(wrap(member(name) + "," + fmt.Sprintf("%q:%s", other, sampleOf(t2, 1))))
				if body.lenient && (err != nil || !reflect.DeepEqual(got, want)) {
					t.Errorf("%v: %s after %s became %+v (%v), want %+v", typ, other, path, got, err, want)
				}
				if r, ok := err.(*Refusal); !body.lenient && (!ok || r.Body.Error != v1.CodeUnknownField || !strings.HasSuffix(r.Body.Field, other)) {
					t.Errorf("%v: %s after %s: %v", typ, other, path, err)
				}
			}
		})
	}
	if fields < 60 {
		t.Errorf("only %d fields were tried", fields)
	}
}

// eachField calls do for each field of a struct and of the structs in it. wrap puts members of the field's own object into
// a whole body.
func eachField(typ reflect.Type, path string, do func(path, name string, t reflect.Type, wrap func(string) string)) {
	var walk func(typ reflect.Type, path string, wrap func(string) string)
	walk = func(typ reflect.Type, path string, wrap func(string) string) {
		for _, f := range reflect.VisibleFields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			do(join(path, name), name, f.Type, wrap)
			inner := f.Type
			for inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			switch {
			case inner.Kind() == reflect.Struct && inner != reflect.TypeFor[v1.Time]():
				walk(inner, join(path, name), func(m string) string { return wrap(fmt.Sprintf("%q:{%s}", name, m)) })
			case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct:
				walk(inner.Elem(), join(path, name)+"[0]", func(m string) string { return wrap(fmt.Sprintf("%q:[{%s}]", name, m)) })
			}
		}
	}
	walk(typ, path, func(m string) string { return "{" + m + "}" })
}

// sampleOf is a JSON value that a type takes, one of two.
func sampleOf(t reflect.Type, which int) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[v1.Time]():
		return []string{`"2025-01-15T10:05:00Z"`, `"2026-01-15T10:05:00Z"`}[which]
	case t == reflect.TypeFor[json.RawMessage]():
		return []string{`{"a":1}`, `{"a":2}`}[which]
	}
	switch t.Kind() {
	case reflect.Struct:
		return "{}"
	case reflect.Map:
		return []string{`{"a":"b"}`, `{"c":"d"}`}[which]
	case reflect.Slice:
		return []string{"[]", "[" + sampleOf(t.Elem(), 0) + "]"}[which]
	case reflect.String:
		return []string{`"a"`, `"b"`}[which]
	case reflect.Bool:
		return []string{"true", "false"}[which]
	}
	return []string{"1", "2"}[which]
}

// misspelt are names that encoding/json takes for the same.
func misspelt(name string) []string {
	names := []string{strings.ToUpper(name[:1]) + name[1:], strings.ToUpper(name)}
	if strings.Contains(name, "k") {
		names = append(names, strings.Replace(name, "k", "\u212a", 1)) // the Kelvin sign
	}
	if strings.Contains(name, "s") {
		names = append(names, strings.Replace(name, "s", "ſ", 1))
	}
	return names
}
