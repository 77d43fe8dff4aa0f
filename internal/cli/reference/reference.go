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

One binary serves and operates. What it serves with is in [configuration.md](configuration.md); this is the rest. ` + "`lubdub help <command>`" + ` says
the same.

## Which deployment

` + "`lubdub context set prod --server https://lubdub.example.com --token -`" + ` keeps one under a name, in ` + "`lubdub/contexts.yaml`" + ` in
` + "`XDG_CONFIG_HOME` or `~/.config`" + `, which only its owner may read; ` + "`lubdub dev`" + ` keeps its own as ` + "`dev`" + `. A command works with the context that
` + "`--context`" + ` names, else with ` + "`LUBDUB_URL` and `LUBDUB_TOKEN` (or `LUBDUB_TOKEN_FILE`)" + `, else with the context of ` + "`LUBDUB_CONTEXT`" + `, else with the
current one. A context's token goes to the context's server and to no other.

## Output

` + "`-o table`" + ` is for people, ` + "`-o wide`" + ` has more columns; ` + "`json`, `jsonl` and `yaml`" + ` are the API's own objects; ` + "`name`" + ` is ` + "`worker/wkr_…`" + `, one a line. What is
not the answer (how many are hidden, that more follow) goes to standard error. There are colours on a terminal only, and none where ` + "`NO_COLOR`" + `
is set.

## Exit codes

| code | |
| --- | --- |
| 0 | it is done, or so |
| 1 | it failed, or is not so: a task that was waited for has not SUCCEEDED, a deployment is not healthy |
| 2 | the command line is wrong, or the request as the server reads it; nothing was begun |
| 3 | there is nothing of that id |
| 4 | no token, one that has ended, or one whose role does not allow it |
| 5 | no server answers, or it cannot reach its store; the same command may work later |

## Acts on many

An act that filters choose is counted first and asked for; ` + "`-y`" + ` agrees beforehand, ` + "`--dry-run`" + ` only counts. One that was interrupted is given again: it
continues with the rest.

`

// Write writes all commands as Markdown.
func Write(w io.Writer, model *kong.Application) error {
	var b strings.Builder
	b.WriteString(referenceHead)
	common := commonFlags(model)
	b.WriteString("## Flags of every command that asks a server\n\n")
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
