package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/internal/tlsfiles"
)

// openProvider reads oidc-file; nil: it is not set, or this process does not serve the API.
func (p *process) openProvider() (*oidc.Provider, error) {
	path := p.cfg.OIDCFile
	if path == "" || !p.cfg.Roles.API {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &mistake{fmt.Errorf("oidc-file: %w", err)}
	}
	cfg, err := oidc.Parse(text)
	if err != nil {
		return nil, &mistake{fmt.Errorf("oidc-file %s: %w", path, err)}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if cfg.CAFile != "" {
		if transport.TLSClientConfig, err = tlsfiles.Client(cfg.CAFile, "", "", "", p.log); err != nil {
			return nil, &mistake{fmt.Errorf("oidc-file %s: caFile: %w", path, err)}
		}
	}
	return oidc.NewProvider(cfg, transport, p.log), nil
}
