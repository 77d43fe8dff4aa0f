package main

import (
	"encoding/json"
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
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
}

// name returns the name of the schema that a reference is to; "": it is none.
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
	RequestBody  struct {
		Content content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content content `json:"content"`
	} `json:"responses"`
}

// call is a method of the clients.
type call struct {
	id, method, path string
	about            string
	ids              []string // the names of the ids in its path
	query            []parameter
	body             string // the type of its body; "": none
	needsBody        bool   // the body has a required field
	answers          []string
	once             bool   // a repeat would take effect again
	drawn            string // the field of the body that makes it idempotent; "": none
	waits            bool   // the body says how long it waits
	opened           access
	entries, entry   string // of a list in pages: the field of the answer with its entries, and their type
}

// access is the token that opens a call.
type access int

const (
	anyone  access = iota
	control        // the client's
	own            // that of an attempt or a worker
	either         // a worker's, or the client's
)

const noFields = "noFields" // the body of calls without fields

// calls returns the calls of a document, in the order of their paths.
func (d *document) calls() (all []call) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			all = append(all, d.call(strings.ToUpper(method), path, d.Paths[path][method]))
		}
	}
	return all
}

func (d *document) call(method, path string, op operation) call {
	c := call{
		id: op.ID, method: method, path: path, about: strings.TrimSpace(op.Summary + ". " + op.Description),
		once: op.Idempotent != nil && !*op.Idempotent, drawn: op.IdempotentBy, body: op.RequestBody.Content["application/json"].Schema.name(),
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
	fields := d.Components.Schemas[c.body]
	c.needsBody = len(fields.Required) > 0
	_, c.waits = fields.Properties["waitMs"]
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		if name := op.Responses[status].Content["application/json"].Schema.name(); name != "" && status < "300" {
			c.answers = append(c.answers, name)
		}
	}
	for _, security := range op.Security {
		for kind := range security {
			c.opened |= map[string]access{"controlToken": control, "workerToken": own, "taskToken": own}[kind]
		}
	}
	if paged {
		answer := d.Components.Schemas[c.answers[0]].Properties
		for _, name := range slices.Sorted(maps.Keys(answer)) {
			if answer[name].isArray() {
				c.entries, c.entry = name, answer[name].Items.name()
				break
			}
		}
	}
	return c
}

// title is a name with a capital first letter, as types and Go methods have it.
func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func read(text []byte) (*document, error) {
	d := &document{}
	return d, json.Unmarshal(text, d)
}
