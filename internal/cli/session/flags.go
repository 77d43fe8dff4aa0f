package session

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/suggest"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

// EnvContext names the context to use.
const EnvContext = "LUBDUB_CONTEXT"

// Flags are the flags of every command that calls a server.
type Flags struct {
	Output    output.Format `short:"o" enum:"table,wide,json,jsonl,yaml,name" default:"table" placeholder:"FORMAT" help:"table, wide, json, jsonl, yaml or name. JSON is the API's own."`
	Context   string        `placeholder:"NAME" predictor:"context" help:"Context to use instead of the current one (LUBDUB_CONTEXT)."`
	Server    string        `placeholder:"URL" help:"Server to use instead of the context's (LUBDUB_URL, with LUBDUB_TOKEN)."`
	Tenant    string        `placeholder:"ID" help:"Tenant, if the token is valid for more than one."`
	Workspace string        `placeholder:"ID" help:"Workspace, if the token is valid for more than one."`
	Timeout   time.Duration `default:"10s" help:"How long to wait for an answer."`
}

// Find returns the selected context. One on the command line takes precedence over variables, and these over the current one. A context's
// token is sent only to the context's server.
func (c *Flags) Find(env *Env) (name string, at contexts.Context, err error) {
	server, token := c.Server, env.Getenv(client.EnvToken)
	if c.Context == "" {
		server = cmp.Or(server, env.Getenv(client.EnvURL))
		if file := env.Getenv(client.EnvTokenFile); token == "" && file != "" {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", at, exit.Misused(fmt.Errorf("%s: %w", client.EnvTokenFile, err))
			}
			token = strings.TrimSpace(string(text))
		}
	} else if server == "" {
		token = ""
	}
	if server != "" {
		return "", contexts.Context{Server: server, Token: token}, nil
	}
	file, err := contexts.Open(env.Getenv)
	if err != nil {
		return "", at, exit.Misused(err)
	}
	name = cmp.Or(c.Context, env.Getenv(EnvContext), file.Current)
	if name == "" {
		return "", at, exit.Misusef("no server is known: run `lubdub dev` to try one, or name yours with\n" +
			"  lubdub context set prod --server https://lubdub.example.com --token-command 'cat ~/.lubdub-token'")
	}
	at, ok := file.Contexts[name]
	if !ok {
		return "", at, exit.Misusef("there is no context %q%s; run `lubdub context ls` to list them", name,
			suggest.DidYouMean(name, file.Names()))
	}
	if token != "" {
		at.Token, at.TokenCommand, at.Login = token, "", nil
	}
	return name, at, nil
}

// CheckServer refuses an invalid address. The error does not quote it, since it may contain a password.
func CheckServer(server string) error {
	for one := range strings.SplitSeq(server, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return exit.Misusef("the server's address is not like https://host:port; see --server, %s or the context", client.EnvURL)
		}
	}
	return nil
}
