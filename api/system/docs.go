package system

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
)

// The documentation at /docs is a readable form of openapi.json. It needs no script and nothing from other origins.

//go:embed docs.html
var docsTemplate string

//go:embed docs.css
var docsStyle []byte

type docsPage struct {
	Title, Summary, Description string
	Tags                        []docsTag
	Schemas                     []docsSchema
}

type docsTag struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Description string
	Token                                  string // which token it requires
	Parameters                             []docsField
	Body                                   *docsBody
	Answers                                []docsBody
}

type docsBody struct {
	Status, Description string
	Type                docsType
	Examples            []docsExample
}

type docsExample struct{ Name, Text string }

// docsType is the short form of a schema in a table: a text, and a link to its description.
type docsType struct{ Text, Link string }

type docsField struct {
	Name, In, Description, Default string
	Required                       bool
	Type                           docsType
}

type docsSchema struct {
	Name, Description string
	Fields            []docsField
}

func renderDocs(openAPI []byte) []byte {
	var doc map[string]any
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		panic(err) // it is part of the program
	}
	d := docsReader{doc}
	var b bytes.Buffer
	if err := template.Must(template.New("docs").Parse(docsTemplate)).Execute(&b, d.page()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// docsReader reads the document that buildOpenAPI writes.
type docsReader struct{ doc map[string]any }

func at(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func textAt(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}

func fieldsAt(v any, path ...string) map[string]any {
	m, _ := at(v, path...).(map[string]any)
	return m
}

func listAt(v any, path ...string) []any {
	l, _ := at(v, path...).([]any)
	return l
}

func (d docsReader) page() docsPage {
	p := docsPage{Title: textAt(d.doc, "info", "title"), Summary: textAt(d.doc, "info", "summary"),
		Description: textAt(d.doc, "info", "description")}
	byTag := map[string][]docsOperation{}
	for _, path := range slices.Sorted(maps.Keys(fieldsAt(d.doc, "paths"))) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			op := fieldsAt(d.doc, "paths", path, method)
			for _, tag := range listAt(op, "tags") {
				byTag[tag.(string)] = append(byTag[tag.(string)], d.operation(strings.ToUpper(method), path, op))
			}
		}
	}
	for _, tag := range listAt(d.doc, "tags") {
		name := textAt(tag, "name")
		p.Tags = append(p.Tags, docsTag{Name: name, Description: textAt(tag, "description"), Operations: byTag[name]})
	}
	schemas := fieldsAt(d.doc, "components", "schemas")
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		s := docsSchema{Name: name, Description: textAt(schemas[name], "description")}
		fields := fieldsAt(schemas[name], "properties")
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			s.Fields = append(s.Fields, docsField{Name: field, Type: typeOf(fields[field]), Description: textAt(fields[field], "description"),
				Default: valueText(at(fields[field], "default")), Required: slices.Contains(listAt(schemas[name], "required"), any(field))})
		}
		p.Schemas = append(p.Schemas, s)
	}
	return p
}

func (d docsReader) operation(method, path string, op map[string]any) docsOperation {
	o := docsOperation{ID: textAt(op, "operationId"), Method: method, Path: path, Summary: textAt(op, "summary"),
		Description: textAt(op, "description"), Token: tokensOf(listAt(op, "security"))}
	for _, param := range listAt(op, "parameters") {
		schema := at(param, "schema")
		required, _ := at(param, "required").(bool)
		o.Parameters = append(o.Parameters, docsField{Name: textAt(param, "name"), In: textAt(param, "in"), Required: required,
			Description: textAt(param, "description"), Type: typeOf(schema), Default: valueText(at(schema, "default"))})
	}
	if body := fieldsAt(op, "requestBody"); body != nil {
		b := d.body("", body)
		o.Body = &b
	}
	answers := fieldsAt(op, "responses")
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		o.Answers = append(o.Answers, d.body(status, answers[status]))
	}
	return o
}

func (d docsReader) body(status string, body any) docsBody {
	if ref := textAt(body, "$ref"); ref != "" {
		body = at(d.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	b := docsBody{Status: status, Description: textAt(body, "description")}
	media := at(body, "content", "application/json")
	b.Type = typeOf(at(media, "schema"))
	if strings.HasPrefix(status, "4") || strings.HasPrefix(status, "5") {
		return b // their examples are the same everywhere
	}
	examples := fieldsAt(media, "examples")
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		text, _ := json.MarshalIndent(at(examples[name], "value"), "", "  ") // which has just been parsed
		b.Examples = append(b.Examples, docsExample{name, string(text)})
	}
	return b
}

func tokensOf(security []any) string {
	var names []string
	for _, s := range security {
		for name := range s.(map[string]any) {
			names = append(names, strings.TrimSuffix(name, "Token"))
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " or ")
}

// typeOf describes a schema in a few words.
func typeOf(schema any) docsType {
	if ref := textAt(schema, "$ref"); ref != "" {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		return docsType{Text: name, Link: "#schema-" + name}
	}
	if items := at(schema, "items"); items != nil {
		of := typeOf(items)
		return docsType{"list of " + of.Text, of.Link}
	}
	if of := fieldsAt(schema, "additionalProperties"); of != nil {
		values := typeOf(of)
		return docsType{"map to " + values.Text, values.Link}
	}
	if choices := listAt(schema, "enum"); choices != nil {
		return docsType{Text: joined(choices, " | ")}
	}
	for _, several := range []string{"oneOf", "anyOf"} {
		var texts []any
		link := ""
		for _, one := range listAt(schema, several) {
			of := typeOf(one)
			texts, link = append(texts, of.Text), cmp.Or(link, of.Link)
		}
		if texts != nil {
			return docsType{joined(texts, " or "), link}
		}
	}
	text := textAt(schema, "type")
	if several := listAt(schema, "type"); several != nil {
		text = joined(several, " or ")
	}
	if format := textAt(schema, "format"); format != "" {
		text += ", " + format
	}
	least, most := at(schema, "minimum"), at(schema, "maximum")
	switch {
	case least != nil && most != nil:
		text += ", " + valueText(least) + " to " + valueText(most)
	case least != nil:
		text += ", at least " + valueText(least)
	case most != nil:
		text += ", at most " + valueText(most)
	}
	return docsType{Text: text}
}

func joined(values []any, by string) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = valueText(v)
	}
	return strings.Join(texts, by)
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	return fmt.Sprint(v)
}
