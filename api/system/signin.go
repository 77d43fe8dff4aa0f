package system

import (
	"encoding/json"

	"github.com/valyala/fasthttp"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/internal/page"
)

// signIn answers with what the dashboard and the command line need to sign a person in with the OpenID provider: an empty object without
// one.
func (h *Handlers) signIn(req *httpapi.Request) (int, error) {
	body := []byte("{}")
	if h.Provider != nil {
		with, ok := h.Provider.SignIn()
		if !ok {
			return 0, httpapi.ErrIssuerUnavailable
		}
		var err error
		if body, err = json.Marshal(with); err != nil {
			return 0, err
		}
	}
	req.Ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	req.Ctx.SetContentType("application/json")
	req.Ctx.SetBody(body)
	return fasthttp.StatusOK, nil
}

// policy returns the pages' Content-Security-Policy: the dashboard also calls the provider's token endpoint.
func (h *Handlers) policy() string {
	if h.Provider == nil {
		return page.Policy("")
	}
	return page.Policy(h.Provider.Origin())
}
