package outside

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type operation struct{ method, path string }

// operations are those of the contract, by the names of the client's methods.
func operations(t *testing.T) map[string]operation {
	t.Helper()
	text, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var contract struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &contract); err != nil {
		t.Fatal(err)
	}
	named := map[string]operation{}
	for path, methods := range contract.Paths {
		for method, about := range methods {
			var op struct{ OperationID string }
			if json.Unmarshal(about, &op) == nil && op.OperationID != "" {
				name := strings.ToUpper(op.OperationID[:1]) + op.OperationID[1:]
				if other, ok := renamed[name]; ok {
					name = other
				}
				named[name] = operation{strings.ToUpper(method), path}
			}
		}
	}
	if len(named) < 60 {
		t.Fatalf("only %d operations were found", len(named))
	}
	return named
}

// renamed are operations whose names are shorter in Go.
var renamed = map[string]string{"Openapi": "OpenAPI", "Version": "ServerVersion"}

// The client has every call of the contract, and it makes just that one.
func TestTheClientHasEveryCall(t *testing.T) {
	var requested operation
	c, err := client.New("https://lubdub.example", client.Token("x"), client.Tries(1), client.Transport(
		carrier(func(r *http.Request) (*http.Response, error) {
			requested = operation{r.Method, r.URL.EscapedPath()}
			return &http.Response{StatusCode: 404, Body: io.NopCloser(strings.NewReader(`{"error":"not_found"}`))}, nil
		})))
	if err != nil {
		t.Fatal(err)
	}
	all := reflect.ValueOf(c)
	for name, op := range operations(t) {
		method := all.MethodByName(name)
		if !method.IsValid() {
			t.Errorf("the client has no %s for %s %s", name, op.method, op.path)
			continue
		}
		requested = operation{}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 1; i < method.Type().NumIn() && len(args) < method.Type().NumIn(); i++ {
			if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
				break
			}
			arg := reflect.New(method.Type().In(i)).Elem()
			if arg.Kind() == reflect.String {
				arg.SetString("a b/c")
			}
			args = append(args, arg)
		}
		method.Call(args)
		path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(op.path, "a%20b%2Fc")
		if want := (operation{op.method, path}); requested != want {
			t.Errorf("%s requests %v, want %v", name, requested, want)
		}
	}
}

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// Every code of the contract is an error to compare with.
func TestTheClientHasEveryCode(t *testing.T) {
	codes, err := os.ReadFile("../../sdk/go/v1/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	errs, err := os.ReadFile("../../sdk/go/client/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\tCode(\w+)\s+=`).FindAllStringSubmatch(string(codes), -1)
	for _, code := range found {
		if !regexp.MustCompile(`Err` + code[1] + `\s+Code = v1\.Code` + code[1] + `\n`).Match(errs) {
			t.Errorf("there is no client.Err%s", code[1])
		}
	}
	if len(found) < 30 || client.ErrTaskExpired != v1.CodeTaskExpired {
		t.Errorf("%d codes were found", len(found))
	}
}
