package api

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// bodySchemas are the schemas of bodies in openapi.json, by pointer. Each is compiled once: kin-openapi, which checks
// everything else of an exchange, compiles the whole document again for each.
var bodySchemas = struct {
	sync.Mutex
	compiler *jsonschema.Compiler // nil: not made yet
	compiled map[string]*jsonschema.Schema
}{compiled: map[string]*jsonschema.Schema{}}

func bodySchema(pointer string) (*jsonschema.Schema, error) {
	s := &bodySchemas
	s.Lock()
	defer s.Unlock()
	if known := s.compiled[pointer]; known != nil {
		return known, nil
	}
	if s.compiler == nil {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(OpenAPI))
		if err != nil {
			return nil, err
		}
		s.compiler = jsonschema.NewCompiler()
		s.compiler.DefaultDraft(jsonschema.Draft2020)
		if err := s.compiler.AddResource("openapi.json", doc); err != nil {
			return nil, err
		}
	}
	schema, err := s.compiler.Compile("openapi.json#" + pointer)
	s.compiled[pointer] = schema
	return schema, err
}

// checkBody holds a JSON body against the schema at a place in openapi.json which says what bodies there are.
func checkBody(place, body string) error {
	schema, err := bodySchema(place + "/content/application~1json/schema")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// placeOf is where openapi.json says something of an operation.
func placeOf(path, method, what string) string {
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
	return "/paths/" + escaped + "/" + strings.ToLower(method) + "/" + what
}

// placeOfAnswer is where it says what an answer is.
func placeOfAnswer(path, method string, status int, answers *openapi3.Responses) string {
	answer := answers.Status(status)
	switch {
	case answer == nil:
		return placeOf(path, method, "responses/default")
	case answer.Ref != "":
		return strings.TrimPrefix(answer.Ref, "#")
	}
	return placeOf(path, method, fmt.Sprintf("responses/%d", status))
}
