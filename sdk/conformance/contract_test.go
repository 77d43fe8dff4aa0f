package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lubdub-io/lubdub/api"
)

// contract is api/openapi.json.
type contract struct {
	router   routers.Router
	compiler *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema
}

var theContract = sync.OnceValues(func() (*contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.OpenAPI))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("openapi.json", raw); err != nil {
		return nil, err
	}
	return &contract{router: router, compiler: compiler, schemas: map[string]*jsonschema.Schema{}}, nil
})

// request holds a request against the contract.
func (c *contract) request(r *http.Request, body []byte) error {
	route, _, err := c.router.FindRoute(r)
	if err != nil {
		return fmt.Errorf("openapi.json has no such operation: %w", err)
	}
	if len(body) == 0 && (route.Operation.RequestBody == nil || !route.Operation.RequestBody.Value.Required) {
		return nil
	}
	return c.body(placeOf(route.Path, r.Method, "requestBody"), body)
}

// answer holds the harness's own answers against the contract, so that no SDK is tested against a wrong one.
func (c *contract) answer(r *http.Request, status int, body []byte) error {
	route, _, err := c.router.FindRoute(r)
	if err != nil {
		return nil // the request was refused for it
	}
	answer := route.Operation.Responses.Status(status)
	place := placeOf(route.Path, r.Method, fmt.Sprintf("responses/%d", status))
	switch {
	case answer == nil:
		place = placeOf(route.Path, r.Method, "responses/default")
	case answer.Ref != "":
		place = strings.TrimPrefix(answer.Ref, "#")
	}
	return c.body(place, body)
}

func (c *contract) body(place string, body []byte) error {
	schema, err := c.schema(place + "/content/application~1json/schema")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

func (c *contract) schema(pointer string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.schemas[pointer]; known != nil {
		return known, nil
	}
	schema, err := c.compiler.Compile("openapi.json#" + pointer)
	c.schemas[pointer] = schema
	return schema, err
}

func placeOf(path, method, what string) string {
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(path)
	return "/paths/" + escaped + "/" + strings.ToLower(method) + "/" + what
}
