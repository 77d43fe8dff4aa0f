package api

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// rootServer is where the document says that the API is.
const rootServer = `"url": "/"`

func (h *systemHandlers) openapi(req *request) (int, any, error) {
	doc := h.OpenAPI
	if base := h.BasePath; base != "" {
		doc = bytes.Replace(doc, []byte(rootServer), []byte(`"url": "`+base+`"`), 1)
	}
	writeBody(req.ctx, fasthttp.StatusOK, doc)
	return fasthttp.StatusOK, nil, nil
}
