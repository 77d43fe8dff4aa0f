// Package reference prints the reference of all commands.
package reference

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/internal/cli/session"
)

type Command struct{}

func (*Command) Run(env *session.Env, k *kong.Context) error { return Write(env.Stdout, k.Model) }

const referenceHead = `# The command line

<!-- Written by ` + "`make generate`" + ` from the commands themselves; change them, not this. -->

The binary ` + "`lubdub`" + ` is both the server and the command line. [configuration.md](configuration.md) describes the settings of the server;
this document describes the commands. ` + "`lubdub help <command>`" + ` shows the same text.

## Which deployment

` + "`lubdub context set prod --server https://lubdub.example.com --token -`" + ` saves a deployment as a context in ` + "`lubdub/contexts.yaml`" + `, in
` + "`XDG_CONFIG_HOME`" + ` or ` + "`~/.config`" + `, which only its owner may read; ` + "`lubdub dev`" + ` saves its own as ` + "`dev`" + `. A command uses the context that
` + "`--context`" + ` names, else ` + "`LUBDUB_URL` and `LUBDUB_TOKEN` (or `LUBDUB_TOKEN_FILE`" + `), else the context of ` + "`LUBDUB_CONTEXT`" + `, else the current
one. The token of a context is sent to the context's server only.

## Output

` + "`-o table`" + ` is for people, and ` + "`-o wide`" + ` has more columns; ` + "`json`, `jsonl` and `yaml`" + ` print the API's objects; ` + "`name`" + ` prints
` + "`worker/wkr_…`" + `, one a line. Notes, such as how many rows are hidden, go to standard error. Colours are used on a terminal only, and not if
` + "`NO_COLOR`" + ` is set.

## Exit codes

| code | |
| --- | --- |
| 0 | success |
| 1 | failure, or a negative result: a task that was waited for has not SUCCEEDED, a deployment is not healthy |
| 2 | the command line or the request is invalid; nothing was changed |
| 3 | not found |
| 4 | no token, an expired one, or one whose role does not allow the request |
| 5 | no server responds, or it cannot reach Redis; the same command may work later |

## Bulk actions

A command that selects by filters first counts what matches and asks for confirmation; ` + "`-y`" + ` confirms in advance, and ` + "`--dry-run`" + ` only
counts. To continue an interrupted command, run it again.

`

// Write writes all commands as Markdown.
func Write(w io.Writer, model *kong.Application) error {
	var b strings.Builder
	b.WriteString(referenceHead)
	common := commonFlags(model)
	b.WriteString("## Flags of every command that calls a server\n\n")
	writeFlags(&b, common, nil)
	var names []string
	for _, f := range common {
		names = append(names, f.Name)
	}
	for _, node := range model.Children {
		writeCommand(&b, node, names)
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// commonFlags are those of every command that asks a server; status has no others.
func commonFlags(model *kong.Application) []*kong.Flag {
	for _, node := range model.Children {
		if node.Name == "status" {
			return node.Flags
		}
	}
	return nil
}

func writeCommand(b *strings.Builder, node *kong.Node, common []string) {
	if node.Hidden {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", strings.TrimPrefix(node.FullPath(), "lubdub "))
	fmt.Fprintf(b, "%s\n\n", node.Help)
	if node.Detail != "" {
		fmt.Fprintf(b, "%s\n\n", node.Detail)
	}
	writeUse(b, node, common)
	for _, child := range node.Children {
		if child.Hidden {
			continue
		}
		fmt.Fprintf(b, "### %s\n\n%s\n\n", strings.TrimPrefix(child.FullPath(), "lubdub "), child.Help)
		if child.Detail != "" {
			fmt.Fprintf(b, "%s\n\n", child.Detail)
		}
		writeUse(b, child, common)
	}
}

func writeUse(b *strings.Builder, node *kong.Node, common []string) {
	if len(node.Children) > 0 {
		return
	}
	use := strings.Replace(node.Summary(), " ("+strings.Join(node.Aliases, ",")+")", "", 1) // which no shell would take
	fmt.Fprintf(b, "```sh\nlubdub %s\n```\n\n", use)
	callsServer := slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == "server" })
	var settings bool
	var own []*kong.Flag
	for _, f := range node.Flags {
		switch {
		case f.Name == "help" || f.Hidden || callsServer && slices.Contains(common, f.Name):
		case f.Tag.Type == "setting":
			settings = true
		default:
			own = append(own, f)
		}
	}
	writeFlags(b, own, node.Positional)
	if settings {
		b.WriteString("And the settings of [configuration.md](configuration.md).\n\n")
	}
}

// writeFlags writes a table of arguments and flags.
func writeFlags(b *strings.Builder, flags []*kong.Flag, args []*kong.Positional) {
	if len(flags) == 0 && len(args) == 0 {
		return
	}
	b.WriteString("| | |\n| --- | --- |\n")
	for _, a := range args {
		fmt.Fprintf(b, "| `%s` | %s |\n", a.Summary(), a.Help)
	}
	for _, f := range flags {
		if f.Name == "help" || f.Hidden {
			continue
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = fmt.Sprintf("-%c, %s", f.Short, name)
		}
		if !f.IsBool() {
			name += " " + f.FormatPlaceHolder()
		}
		help := f.Help
		if f.HasDefault && f.Default != "" && !f.IsBool() {
			help += fmt.Sprintf(" Default `%s`.", f.Default)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(help, "|", `\|`))
	}
	b.WriteString("\n")
}
