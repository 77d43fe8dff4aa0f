package main

import (
	"fmt"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// devContext is the name of the context that dev writes for later commands.
const devContext = "dev"

// keepContext writes a context for the server that runs here, so that the next command works without flags. It returns a message about it,
// and a function that removes it: once dev has ended, its token is worth nothing. If there is no home directory to write to, the message
// states that, and dev continues.
func keepContext(env *session.Env, p *process, keys *token.Keyring, withFleet bool) (message string, remove func()) {
	tenant, workspace := "default", "default"
	if withFleet {
		tenant, workspace = fleetTenant, fleetWorkspace
	}
	admin, _, err := keys.MintControl(token.Control{
		Role: token.RoleAdmin, Tenant: "*", Workspace: "*", Subject: "dev", TTL: 24 * time.Hour,
	}, time.Now())
	if err != nil {
		return "# no context was saved for the CLI: " + err.Error(), func() {}
	}
	current, err := contexts.Add(env.Getenv, devContext, contexts.Context{
		Server: p.apiURL(), Token: admin, Tenant: tenant, Workspace: workspace,
	})
	if err != nil {
		return "# no context was saved for the CLI: " + err.Error(), func() {}
	}
	flag := ""
	if !current {
		flag = " --context " + devContext
	}
	return fmt.Sprintf(`
# Or use the CLI. The context %s was saved for it until this ends, with the scope %s/%s:
#   lubdub status%[4]s
#   lubdub worker ls%[4]s
#   lubdub task ls%[4]s --state FAILED
#   lubdub event tail%[4]s
`, devContext, tenant, workspace, flag), func() { forgetContext(env, admin) }
}

// forgetContext removes the context of a dev that ends, unless another one has replaced it.
func forgetContext(env *session.Env, token string) {
	_ = contexts.Change(env.Getenv, func(file *contexts.File) error {
		if file.Contexts[devContext].Token == token {
			file.Remove(devContext)
		}
		return nil
	})
}
