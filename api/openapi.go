package api

import (
	"bytes"
	_ "embed"

	"github.com/valyala/fasthttp"
)

// OpenAPI is the OpenAPI 3.1 document of the API. It is generated from the route table and package v1; a test
// holds that it is up to date (go test ./api -run TestOpenAPI -update writes it).
//
//go:embed openapi.json
var OpenAPI []byte

// rootServer is where the document says that the API is.
const rootServer = `"url": "/"`

func (req *request) openapi() (int, any, error) {
	doc := OpenAPI
	if base := req.s.cfg.BasePath; base != "" {
		doc = bytes.Replace(doc, []byte(rootServer), []byte(`"url": "`+base+`"`), 1)
	}
	writeBody(req.ctx, fasthttp.StatusOK, doc)
	return fasthttp.StatusOK, nil, nil
}
