package system

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
)

// rootServer is the document's entry for the API's address.
const rootServer = `"url": "/"`

func (h *Handlers) openapi(req *httpapi.Request) (int, any, error) {
	doc := h.OpenAPI
	if base := h.BasePath; base != "" {
		doc = bytes.Replace(doc, []byte(rootServer), []byte(`"url": "`+base+`"`), 1)
	}
	httpapi.WriteBody(req.Ctx, fasthttp.StatusOK, doc)
	return fasthttp.StatusOK, nil, nil
}
