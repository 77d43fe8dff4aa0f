package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/api/httpapi"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// This file makes openapi.json: schemas from the types of package v1 with their comments, paths from the
// route table, and what is neither from openapi_words*_test.go.

type obj = map[string]any

type openAPIBuilder struct {
	comments map[string]string // Type, Type.Field
	schemas  obj

	responses obj
}

func buildOpenAPI(t *testing.T) []byte {
	t.Helper()
	b := &openAPIBuilder{comments: readComments(t, "../sdk/go/v1"), schemas: obj{}, responses: obj{}}
	paths := obj{}
	for _, r := range routes {
		path, _ := paths[r.Pattern].(obj)
		if path == nil {
			path = obj{}
			paths[r.Pattern] = path
		}
		path[strings.ToLower(r.Method)] = b.operation(r)
	}
	doc := obj{
		"openapi": "3.1.0",
		"info": obj{
			"title": "Lubdub", "version": "1",
			"summary":     "A heartbeat tracker: who is alive, who has gone silent, and what becomes of their work",
			"description": docDescription,
			"license":     obj{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{obj{"url": "/"}},
		"tags":    tags,
		"paths":   paths,
		"components": obj{"schemas": b.schemas, "responses": b.responses, "headers": obj{"RequestId": requestIDHeaderSchema},
			"securitySchemes": securitySchemes},
	}
	out, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

func (b *openAPIBuilder) operation(r *httpapi.Route) obj {
	op := obj{"operationId": r.Op, "tags": []any{r.Tag}, "summary": r.Summary}
	if r.Description != "" {
		op["description"] = r.Description
	}
	if r.NotIdempotent {
		op["x-idempotent"] = false
	}
	if r.IdempotentBy != "" {
		op["x-idempotent-by"] = r.IdempotentBy
	}
	switch r.Access {
	case httpapi.ForTask, httpapi.ForBeat, httpapi.ForItems:
		op["security"] = []any{obj{"taskToken": []any{}}, obj{"workerToken": []any{}}}
		if r.Op == opHeartbeats {
			op["security"] = []any{obj{}, obj{"workerToken": []any{}}}
		}
	case httpapi.ForWorker:
		op["security"] = []any{obj{"workerToken": []any{}}}
		if r.Needs != 0 {
			op["security"] = []any{obj{"workerToken": []any{}}, obj{"controlToken": []any{}}}
			op["description"] = strings.TrimSpace(r.Description + " Roles, in addition to the worker itself: " +
				strings.ReplaceAll(httpapi.RolesFor(r.Needs), " or ", ", ") + ".")
		}
	case httpapi.ForControl:
		op["security"] = []any{obj{"controlToken": []any{}}}
		op["description"] = strings.TrimSpace(r.Description + " Roles: " + strings.ReplaceAll(httpapi.RolesFor(r.Needs), " or ", ", ") + ".")
	default:
		op["security"] = []any{}
	}

	var params []any
	if id := r.IDField(); id != "" {
		params = append(params, obj{"name": id, "in": "path", "required": true, "schema": httpapi.IDSchema})
	}
	if (r.Access == httpapi.ForControl || r.Access == httpapi.ForWorker) && (len(r.Query) == 0 || r.Query[0].Name != "tenantId") {
		params = append(params, parameter("query", httpapi.ParamTenantID), parameter("query", httpapi.ParamWorkspaceID))
	}
	for _, p := range r.Query {
		params = append(params, parameter("query", p))
	}
	for _, p := range r.Headers {
		params = append(params, parameter("header", p))
	}
	if params != nil {
		op["parameters"] = params
	}
	bodies, answers := r.Examples, r.AnswerExamples
	if seed, ok := seedExamples[r.Op]; ok {
		bodies, answers = seed.bodies, seed.answers
	}
	if r.Body != nil {
		media := obj{"schema": b.ref(reflect.TypeOf(r.Body))}
		if bodies != nil {
			media["examples"] = examples(bodies)
		}
		op["requestBody"] = obj{"required": !r.OptionalBody, "content": obj{"application/json": media}}
	}

	responses := obj{}
	for status, body := range r.Answers {
		response := obj{"description": statusWords[status], "headers": obj{"X-Request-Id": requestIDHeader}}
		media := obj{"schema": obj{"type": "object"}}
		if body != nil {
			media["schema"] = b.schemaOf(body)
		}
		if ex := answers[status]; ex != nil {
			media["examples"] = examples(ex)
		}
		response["content"] = obj{"application/json": media}
		if r.Op == opEvents {
			response["content"] = obj{"application/json": media, "text/event-stream": obj{"schema": obj{"type": "string"},
				"examples": examples(map[string]string{"stream": exampleStream})}}
		}
		responses[strconv.Itoa(status)] = response
	}
	for _, status := range errorStatuses(r) {
		if responses[strconv.Itoa(status)] != nil {
			continue
		}
		if ex := answers[status]; ex != nil {
			responses[strconv.Itoa(status)] = b.errorResponse(status, ex)
			continue
		}
		name := "Error" + strconv.Itoa(status)
		b.responses[name] = b.errorResponse(status, nil)
		responses[strconv.Itoa(status)] = obj{"$ref": "#/components/responses/" + name}
	}
	op["responses"] = responses
	return op
}

func (b *openAPIBuilder) errorResponse(status int, ex map[string]string) obj {
	headers := obj{"X-Request-Id": requestIDHeader}
	if status == 429 || status == 503 {
		headers["Retry-After"] = obj{"description": "Seconds after which to retry.", "schema": obj{"type": "integer", "minimum": 1}}
	}
	media := obj{"schema": b.ref(reflect.TypeFor[v1.Error]())}
	if ex != nil {
		media["examples"] = examples(ex)
	}
	return obj{"description": statusWords[status], "headers": headers, "content": obj{"application/json": media}}
}

// errorStatuses lists what the machinery around the operation may answer and what the operation adds.
func errorStatuses(r *httpapi.Route) []int {
	set := append([]int{400, 500}, r.Errors...)
	if r.Access != httpapi.ForAll {
		set = append(set, 401, 403, 429, 503)
	}
	if r.Body != nil {
		set = append(set, 413, 415)
	}
	if r.Access == httpapi.ForItems && r.Op == opHeartbeats {
		set = slices.DeleteFunc(set, func(s int) bool { return s == 401 || s == 403 || s == 429 })
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// parameter describes a parameter of a query or a header.
func parameter(in string, p httpapi.Param) obj {
	o := obj{"name": p.Name, "in": in, "description": p.Description, "schema": p.Schema}
	if p.Schema["type"] == "array" {
		o["style"], o["explode"] = "form", !p.Commas
	}
	return o
}

func examples(all map[string]string) obj {
	out := obj{}
	for name, text := range all {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			panic(name + ": " + err.Error())
		}
		out[name] = obj{"value": v}
	}
	return out
}

// schemaOf returns the schema of a body: a type of v1, or several of them for one status.
func (b *openAPIBuilder) schemaOf(body any) obj {
	if either, ok := body.([]any); ok {
		var list []any
		for _, one := range either {
			list = append(list, b.ref(reflect.TypeOf(one)))
		}
		return obj{"anyOf": list}
	}
	return b.ref(reflect.TypeOf(body))
}

// ref returns a reference to a struct's schema, which it makes when it is new.
func (b *openAPIBuilder) ref(t reflect.Type) obj {
	name := t.Name()
	if name == "" {
		name = "noFields" // the body of a call that takes none: {} or nothing
	}
	if _, made := b.schemas[name]; !made {
		b.schemas[name] = nil // in the making
		b.schemas[name] = b.structSchema(t)
	}
	return obj{"$ref": "#/components/schemas/" + name}
}

func (b *openAPIBuilder) structSchema(t reflect.Type) obj {
	request := strings.HasSuffix(t.Name(), "Request") || strings.HasSuffix(t.Name(), "Item") ||
		slices.Contains([]string{"RetryPolicy", "Placement", "TaskError", "WorkerSelector"}, t.Name())
	properties, required := obj{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		optional := strings.Contains(options, "omit")
		owner := t.Name()
		if len(f.Index) > 1 {
			owner = t.Field(f.Index[0]).Name
		}
		s := b.fieldSchema(owner, name, f.Type, request, optional)
		if c := b.comments[owner+"."+f.Name]; c != "" {
			s["description"] = c
		}
		properties[name] = s
		if !optional {
			required = append(required, name)
		}
	}
	s := obj{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	if strictTypes[t.Name()] || t.NumField() == 0 {
		s["additionalProperties"] = false
	}
	if c := b.comments[t.Name()]; c != "" {
		s["description"] = c
	}
	return s
}

func (b *openAPIBuilder) fieldSchema(owner, name string, t reflect.Type, request, optional bool) obj {
	nullable := request && optional // a null means absent
	if t.Kind() == reflect.Pointer {
		nullable = nullable || !optional
		t = t.Elem()
	}
	s, overridden := fieldSchemas[owner+"."+name]
	if !overridden {
		s, overridden = fieldSchemas[name]
	}
	if overridden {
		return withNull(clone(s), nullable)
	}
	switch {
	case t == reflect.TypeFor[v1.Time]():
		s = obj{"type": "string", "format": "date-time"}
		nullable = nullable || !optional && !neverNull[name]
	case t == reflect.TypeFor[json.RawMessage]():
		return clone(anyJSON)
	case t.Kind() == reflect.String:
		s = obj{"type": "string"}
		if request && idFields[name] {
			s = idSchema(false)
		}
		if words := enums[t.Name()]; words != nil {
			s["enum"] = words
		}
	case t.Kind() == reflect.Bool:
		s = obj{"type": "boolean"}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		s = obj{"type": "integer"}
	case t.Kind() == reflect.Float64:
		s = obj{"type": "number"}
	case t.Kind() == reflect.Map:
		s = obj{"type": "object", "additionalProperties": obj{"type": "string"}}
		if k := t.Elem().Kind(); k == reflect.Int || k == reflect.Int64 {
			s["additionalProperties"] = obj{"type": "integer", "minimum": 0}
		}
	case t.Kind() == reflect.Slice:
		s = obj{"type": "array", "items": b.itemSchema(t.Elem())}
		if most := mostEntries[owner+"."+name]; most > 0 {
			s["minItems"], s["maxItems"] = 1, most
		}
	case t.Kind() == reflect.Struct:
		if !nullable {
			return b.ref(t)
		}
		return obj{"anyOf": []any{b.ref(t), obj{"type": "null"}}}
	default:
		panic("no schema for " + t.String())
	}
	return withNull(s, nullable)
}

func (b *openAPIBuilder) itemSchema(t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return obj{"type": "string"}
	case reflect.Int:
		return obj{"type": "integer"}
	}
	if t == reflect.TypeFor[v1.Time]() {
		return obj{"type": "string", "format": "date-time"}
	}
	if t == reflect.TypeFor[json.RawMessage]() { // results of a batch of creations
		return obj{
			"type": "object", "required": []string{"status"},
			"properties": obj{"status": obj{"type": "integer"}},
			"anyOf": []any{
				b.ref(reflect.TypeFor[v1.TaskEnvelope]()), b.ref(reflect.TypeFor[v1.Task]()), b.ref(reflect.TypeFor[v1.Error]()),
			},
		}
	}
	return b.ref(t)
}

func withNull(s obj, nullable bool) obj {
	if !nullable {
		return s
	}
	if kind, one := s["type"].(string); one {
		s["type"] = []string{kind, "null"}
	}
	if words, ok := s["enum"].([]any); ok {
		s["enum"] = append(slices.Clone(words), nil)
	}
	return s
}

func clone(o obj) obj {
	c := obj{}
	for k, v := range o {
		c[k] = v
	}
	return c
}

func idSchema(nullable bool) obj {
	return withNull(obj{"type": "string", "pattern": `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`}, nullable)
}
