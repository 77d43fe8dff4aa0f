package api

import (
	"bytes"
	"context"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

var update = flag.Bool("update", false, "write openapi.json")

func TestOpenAPIIsUpToDate(t *testing.T) {
	t.Parallel()
	want := buildOpenAPI(t)
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(OpenAPI, want) {
		t.Fatal("openapi.json is not what the route table and package v1 say; write it with: make generate")
	}
}

func loadOpenAPI(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := loadDoc()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func loadDoc() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(OpenAPI) }

func TestOpenAPIIsValid(t *testing.T) {
	t.Parallel()
	doc := loadOpenAPI(t)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s", doc.OpenAPI)
	}
	if err := doc.Validate(context.Background(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
}

func TestOpenAPIHasExactlyTheRoutes(t *testing.T) {
	t.Parallel()
	if *update {
		t.Skip("this program still contains the document from before")
	}
	var want, got []string
	for _, r := range routes {
		want = append(want, r.String())
	}
	for path, item := range loadOpenAPI(t).Paths.Map() {
		for method := range item.Operations() {
			got = append(got, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("openapi.json has not the paths of the routes; write it with: make generate\npaths\n%v\nroutes\n%v", got, want)
	}
}

// readComments returns the comments of the types and fields of a package, in one line each.
func readComments(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no sources of package v1", err)
	}
	comments := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				ts := spec.(*ast.TypeSpec)
				comments[ts.Name.Name] = sentence(g.Doc.Text(), ts.Name.Name)
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range st.Fields.List {
					for _, n := range field.Names {
						comments[ts.Name.Name+"."+n.Name] = sentence(field.Doc.Text(), n.Name)
					}
				}
			}
		}
	}
	return comments
}

// sentence makes a Go comment a description: "Attempt is the current attempt" becomes "The current attempt".
func sentence(text, name string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, verb := range []string{" is ", " are ", " has ", " says ", " tells "} {
		if rest, ok := strings.CutPrefix(text, name+verb); ok {
			if verb == " has " || verb == " says " || verb == " tells " {
				rest = strings.TrimSpace(verb) + " " + rest
			}
			text = rest
			break
		}
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
