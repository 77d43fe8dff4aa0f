package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schema is what the generator needs of a schema of the OpenAPI document.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"` // a string, or a list of them
	Enum       []any             `json:"enum"`
	Items      *schema           `json:"items"`
	AnyOf      []schema          `json:"anyOf"`
	Properties map[string]schema `json:"properties"`
}

// name returns the name of the schema to which a reference leads, or "" if this is not a reference.
func (s schema) name() string { return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:] }

func (s schema) isArray() bool {
	switch t := s.Type.(type) {
	case string:
		return t == "array"
	case []any:
		return slices.Contains(t, any("array"))
	}
	return false
}

type parameter struct {
	Name   string `json:"name"`
	In     string `json:"in"`
	Schema schema `json:"schema"`
}

type content map[string]struct {
	Schema schema `json:"schema"`
}

// document is an OpenAPI document.
type document struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	ID           string                `json:"operationId"`
	Summary      string                `json:"summary"`
	Description  string                `json:"description"`
	Parameters   []parameter           `json:"parameters"`
	Security     []map[string][]string `json:"security"`
	Idempotent   *bool                 `json:"x-idempotent"`
	IdempotentBy string                `json:"x-idempotent-by"`
	RequestBody  *struct {
		Required bool    `json:"required"`
		Content  content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content content `json:"content"`
	} `json:"responses"`
}

// call is a method of the clients.
type call struct {
	id, method, path    string
	about               string
	ids                 []string // the names of the ids in its path
	query               []parameter
	body                string // the type of its body; "": none
	needsBody           bool
	answers             []string
	once                bool   // a repeat would take effect again
	idempotentBy        string // the field of the body that makes a repeat safe; "": none
	waits               bool   // the body says how long it waits
	tokens              []string
	listField, listType string // of a list in pages: the field of the answer with its entries, and their type
}

const noFields = "noFields" // the body of calls without fields

// The tokens that may open a call.
const (
	controlToken = "controlToken" // the client's
	workerToken  = "workerToken"
	taskToken    = "taskToken" // an attempt's
)

// calls returns the calls of a document, in the order of their paths.
func (d *document) calls() (all []call, err error) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			c, err := d.call(strings.ToUpper(method), path, d.Paths[path][method])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.id, err)
			}
			all = append(all, c)
		}
	}
	return all, nil
}

func (d *document) call(method, path string, op operation) (call, error) {
	c := call{
		id: op.ID, method: method, path: path, about: strings.TrimSpace(op.Summary + ". " + op.Description),
		once: op.Idempotent != nil && !*op.Idempotent, idempotentBy: op.IdempotentBy,
	}
	paged := false
	for _, p := range op.Parameters {
		switch {
		case p.In == "path":
			c.ids = append(c.ids, p.Name)
		case p.In == "query" && p.Name != "tenantId" && p.Name != "workspaceId":
			c.query = append(c.query, p)
			paged = paged || p.Name == "pageToken"
		}
	}
	if body := op.RequestBody; body != nil {
		c.body, c.needsBody = body.Content["application/json"].Schema.name(), body.Required
		_, c.waits = d.Components.Schemas[c.body].Properties["waitMs"]
		if c.body == "" {
			return c, errors.New("its body has no named schema")
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		if s := op.Responses[status].Content["application/json"].Schema; status < "300" {
			for _, one := range append(s.AnyOf, s) {
				if one.name() != "" {
					c.answers = append(c.answers, one.name())
				}
			}
		}
	}
	if op.Security == nil {
		return c, errors.New("it does not say which token opens it")
	}
	for _, security := range op.Security {
		c.tokens = slices.AppendSeq(c.tokens, maps.Keys(security))
	}
	for _, kind := range c.tokens {
		if kind != controlToken && kind != workerToken && kind != taskToken {
			return c, fmt.Errorf("unknown token %s", kind)
		}
	}
	if len(c.query) > 0 && !c.isOpenedBy(controlToken) {
		return c, errors.New("it has a query and is not opened by the client's token")
	}
	if !paged {
		return c, nil
	}
	answer := d.Components.Schemas[c.answers[0]].Properties
	for name, field := range answer {
		if field.isArray() && c.listField != "" {
			return c, errors.New("its answer has two lists")
		} else if field.isArray() {
			c.listField, c.listType = name, field.Items.name()
		}
	}
	return c, nil
}

// isOpenedBy reports whether a token of this kind opens the call.
func (c *call) isOpenedBy(kind string) bool { return slices.Contains(c.tokens, kind) }

// isOwn reports whether the call is made with the token of a worker or an attempt, and not with the client's.
func (c *call) isOwn() bool { return len(c.tokens) > 0 && !c.isOpenedBy(controlToken) }

// isEither reports whether both the token of a worker and the client's open the call.
func (c *call) isEither() bool { return c.isOpenedBy(controlToken) && c.isOpenedBy(workerToken) }

// iterator is the name of the method that yields all pages of a list, without the verb.
func (c *call) iterator() string { return strings.TrimPrefix(c.id, "list") }

// title is a name with a capital first letter, as types and Go methods have it.
func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func read(text []byte) (*document, error) {
	d := &document{}
	return d, json.Unmarshal(text, d)
}
