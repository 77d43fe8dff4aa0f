// Package contextcmd has the commands that list, choose and change contexts.
package contextcmd

import (
	"cmp"
	"fmt"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/output"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/suggest"
	"github.com/lubdub-io/lubdub/sdk/go/client"
)

type List struct {
	Output output.Format `short:"o" enum:"table,name" default:"table" placeholder:"FORMAT" help:"table or name."`
}

func (c *List) Run(env *session.Env) error {
	file, err := contexts.Open(env.Getenv)
	if err != nil {
		return exit.Misused(err)
	}
	current := cmp.Or(env.Getenv(session.EnvContext), file.Current)
	p := &output.Printer{W: env.Stdout, Format: c.Output, Colour: env.Colourful()}
	var rows [][]output.Cell
	for _, name := range file.Names() {
		if c.Output == output.Name {
			fmt.Fprintln(env.Stdout, name)
			continue
		}
		at, star := file.Contexts[name], " "
		if name == current {
			star = "*"
		}
		rows = append(rows, []output.Cell{output.Text(star), output.Text(name), output.Text(at.Server), output.Text(scopeText(at)),
			output.Text(opens(at))})
	}
	if len(file.Contexts) == 0 {
		fmt.Fprintf(env.Stderr, "No context is kept in %s; `lubdub context set` adds one, and `lubdub dev` its own.\n", file.Path)
		return nil
	}
	if c.Output == output.Name {
		return nil
	}
	return p.Rows("", "NAME", "SERVER", "SCOPE", "OPENED BY").Write(rows)
}

func scopeText(c contexts.Context) string {
	if c.Tenant == "" && c.Workspace == "" {
		return ""
	}
	return cmp.Or(c.Tenant, "*") + "/" + cmp.Or(c.Workspace, "*")
}

// opens names what opens a context, and never the token itself.
func opens(c contexts.Context) string {
	switch {
	case c.TokenCommand != "":
		return "a command"
	case c.Token == "":
		return "nothing"
	}
	what := "a token"
	if c.Login != nil {
		what = "a sign-in"
	}
	if _, claims, err := session.ReadClaims(c.Token); err == nil && claims.Role != "" {
		return what + ", role " + claims.Role
	}
	return what
}

type Use struct {
	Name string `arg:"" predictor:"context" help:"Context."`
}

func (c *Use) Run(env *session.Env) error {
	server := ""
	err := change(env, func(file *contexts.File) error {
		at, ok := file.Contexts[c.Name]
		if !ok {
			return noContext(c.Name, file)
		}
		file.Current, server = c.Name, at.Server
		return nil
	})
	if err != nil {
		return err
	}
	if other := env.Getenv(session.EnvContext); other != "" && other != c.Name {
		fmt.Fprintf(env.Stderr, "%s=%s counts before it in this shell.\n", session.EnvContext, other)
	}
	if env.Getenv(client.EnvURL) != "" {
		fmt.Fprintf(env.Stderr, "%s counts before it in this shell.\n", client.EnvURL)
	}
	fmt.Fprintf(env.Stderr, "Commands work with %s now.\n", server)
	return nil
}

// change changes the file.
func change(env *session.Env, do func(*contexts.File) error) error {
	if err := contexts.Change(env.Getenv, do); err != nil {
		return exit.Misused(err)
	}
	return nil
}

func noContext(name string, file *contexts.File) error {
	return exit.Misusef("there is no context %q%s; run `lubdub context ls` to list them", name, suggest.DidYouMean(name, file.Names()))
}

type Set struct {
	Name         string  `arg:"" predictor:"context" help:"Context."`
	Server       *string `placeholder:"URL" help:"URL of the API; several with commas."`
	Token        *string `placeholder:"-" help:"- reads the token from standard input; the arguments of a command are visible to other users."`
	TokenCommand *string `placeholder:"LINE" help:"Shell command that prints the token; it runs whenever a token is needed."`
	CAFile       *string `name:"ca-file" placeholder:"FILE" help:"File of certificate authorities (PEM) to trust instead of the system's."`
	Tenant       *string `placeholder:"ID" help:"Tenant of every call."`
	Workspace    *string `placeholder:"ID" help:"Workspace of every call."`
	AllowHTTP    *bool   `name:"allow-http" negatable:"" help:"Allow sending the token unencrypted, over http://, to another host; only for private networks."`
	Use          bool    `help:"Make it the current one."`
}

func (c *Set) Run(env *session.Env) error {
	token, err := "", error(nil)
	if c.Token != nil {
		if token, err = session.ReadToken(env, *c.Token); err != nil { // before the file is locked: it may take long
			return err
		}
	}
	return change(env, func(file *contexts.File) error { return c.change(file, token) })
}

func (c *Set) change(file *contexts.File, token string) error {
	at, known := file.Contexts[c.Name]
	if !known && c.Server == nil {
		return exit.Misusef("there is no context %q%s; to make it, say where it is with --server", c.Name,
			suggest.DidYouMean(c.Name, file.Names()))
	}
	for field, value := range map[*string]*string{
		&at.Server: c.Server, &at.TokenCommand: c.TokenCommand, &at.CAFile: c.CAFile, &at.Tenant: c.Tenant, &at.Workspace: c.Workspace,
	} {
		if value != nil {
			*field = *value
		}
	}
	if c.AllowHTTP != nil {
		at.AllowHTTP = *c.AllowHTTP
	}
	if at.Login != nil && (c.TokenCommand != nil || c.Token != nil || c.Server != nil) { // a sign-in is for one server
		at.Login, at.Token = nil, ""
	}
	if c.TokenCommand != nil {
		at.Token = ""
	}
	if c.Token != nil {
		at.Token, at.TokenCommand = token, ""
	}
	if err := checkContext(at); err != nil {
		return exit.Misused(err)
	}
	if err := file.Set(c.Name, at); err != nil {
		return exit.Misused(err)
	}
	if c.Use || file.Current == "" {
		file.Current = c.Name
	}
	return nil
}

// checkContext asks the client whether it would take these.
func checkContext(at contexts.Context) error {
	if err := session.CheckServer(at.Server); err != nil {
		return err
	}
	opts := []client.Option{client.Token(at.Token)}
	if at.TokenCommand != "" {
		opts[0] = client.Token("a-token")
	}
	if at.AllowHTTP {
		opts = append(opts, client.AllowHTTP())
	}
	c, err := client.New(at.Server, opts...)
	if err != nil {
		return err
	}
	c.Close()
	return nil
}

type Remove struct {
	Names []string `arg:"" predictor:"context" name:"name" help:"Contexts."`
}

func (c *Remove) Run(env *session.Env) error {
	return change(env, func(file *contexts.File) error {
		for _, name := range c.Names {
			if _, ok := file.Contexts[name]; !ok {
				return noContext(name, file)
			}
			file.Remove(name)
		}
		return nil
	})
}
