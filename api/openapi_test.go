package api

import (
	"bytes"
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

var update = flag.Bool("update", false, "write openapi.json")

func TestOpenAPIIsUpToDate(t *testing.T) {
	want := buildOpenAPI(t)
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(OpenAPI, want) {
		t.Fatal("openapi.json is not what the route table and package v1 say; write it with: go test ./api -run TestOpenAPI -update")
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
	doc := loadOpenAPI(t)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s", doc.OpenAPI)
	}
	if err := doc.Validate(context.Background(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
}

func TestOpenAPIHasExactlyTheRoutes(t *testing.T) {
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
		t.Errorf("paths\n%v\nroutes\n%v", got, want)
	}
}
