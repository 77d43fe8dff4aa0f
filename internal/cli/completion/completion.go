// Package completion completes the command lines of shells.
package completion

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type Command struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*Command) Help() string {
	return "Prints what a shell needs to complete commands, flags, and the queues, workers, machines, tasks, schedules and webhooks of the " +
		"server that the context names. bash and zsh: source <(lubdub completion bash). fish: lubdub completion fish | source"
}

var completions = map[string]string{
	"bash": "complete -o default -o bashdefault -C lubdub lubdub\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -o bashdefault -C lubdub lubdub\n",
	"fish": `function __complete_lubdub
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    lubdub
end
complete -f -c lubdub -a "(__complete_lubdub)"
`,
}

func (c *Command) Run(env *session.Env) error {
	_, err := io.WriteString(env.Stdout, completions[c.Shell])
	return err
}

// IDList lists ids from a server.
type IDList func(context.Context, *session.Session) ([]string, error)

// IDLists maps the predictor of an argument or flag to the list of ids to offer.
type IDLists map[string][]IDList

// Complete prints the completions for a shell's command line; it returns false if no shell requested them.
func Complete(env *session.Env, parser *kong.Kong, ids IDLists) bool {
	line := env.Getenv("COMP_LINE")
	if line == "" {
		return false
	}
	if point, err := strconv.Atoi(env.Getenv("COMP_POINT")); err == nil && point >= 0 && point < len(line) {
		line = line[:point]
	}
	words := strings.Fields(line)
	begun := "" // the word at the cursor
	if n := len(words); n > 0 && strings.HasSuffix(line, words[n-1]) {
		words, begun = words[:n-1], words[n-1]
	}
	for _, word := range continuations(env, ids, parser.Model.Node, words, begun) {
		if strings.HasPrefix(word, begun) {
			_, _ = fmt.Fprintln(env.Stdout, word)
		}
	}
	return true
}

// continuations lists the possible continuations of a line, whose first word is the program.
func continuations(env *session.Env, ids IDLists, command *kong.Node, words []string, begun string) (all []string) {
	var value *kong.Value // of a flag that is the previous word
	arguments := 0
	for _, word := range words[min(1, len(words)):] {
		child := slices.IndexFunc(command.Children, func(n *kong.Node) bool { return n.Name == word || slices.Contains(n.Aliases, word) })
		switch {
		case value != nil:
			value = nil
		case strings.HasPrefix(word, "-"):
			value = valueAfter(command, word)
		case child >= 0:
			command = command.Children[child]
		default:
			arguments++
		}
	}
	switch {
	case value != nil:
		return valuesOf(env, ids, value, words)
	case strings.HasPrefix(begun, "-"):
		for _, flag := range slices.Concat(command.AllFlags(true)...) {
			all = append(all, "--"+flag.Name)
			if flag.Short != 0 {
				all = append(all, "-"+string(flag.Short))
			}
		}
		return all
	}
	for _, child := range command.Children {
		if !child.Hidden {
			all = append(all, child.Name)
		}
	}
	if last := len(command.Positional) - 1; last >= 0 && (arguments <= last || command.Positional[last].IsCumulative()) {
		all = append(all, valuesOf(env, ids, command.Positional[min(arguments, last)], words)...)
	}
	return all
}

// valueAfter returns the value that a flag expects as the next word; nil: none.
func valueAfter(command *kong.Node, word string) *kong.Value {
	for _, flag := range slices.Concat(command.AllFlags(false)...) {
		if (word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short)) && !flag.IsBool() {
			return flag.Value
		}
	}
	return nil
}

// valuesOf lists the values of a flag or argument: of its tag predictor, or of its enum.
func valuesOf(env *session.Env, ids IDLists, value *kong.Value, words []string) []string {
	predictor := value.Tag.Get("predictor")
	if lists := ids[predictor]; lists != nil {
		var all []string
		for _, list := range lists {
			all = append(all, idsFrom(env, list, words)...)
		}
		return all
	}
	switch predictor {
	case "context":
		return contextNames(env)
	case "state":
		return wordsOf(v1.States)
	case "status":
		return wordsOf(v1.WorkerStatuses)
	case "liveness":
		return wordsOf([]v1.Liveness{v1.LivenessFresh, v1.LivenessLate, v1.LivenessLost})
	}
	if value.Enum != "" {
		return value.EnumSlice()
	}
	return nil
}

func wordsOf[T ~string](all []T) (words []string) {
	for _, w := range all {
		words = append(words, string(w))
	}
	return words
}

func contextNames(env *session.Env) []string {
	file, err := contexts.Open(env.Getenv)
	if err != nil {
		return nil
	}
	return file.Names()
}

// shellTimeout limits the time for a completion.
const shellTimeout = 2 * time.Second

// idsFrom lists ids from the line's server. A shell gets no error.
func idsFrom(env *session.Env, list IDList, words []string) []string {
	quiet := *env
	quiet.Stderr = io.Discard
	common := &session.Flags{
		Context: flagIn(words, "context"), Server: flagIn(words, "server"), Tenant: flagIn(words, "tenant"),
		Workspace: flagIn(words, "workspace"), Timeout: shellTimeout, Output: "name",
	}
	s, err := common.Open(&quiet)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(env.Context, shellTimeout)
	defer cancel()
	all, err := list(ctx, s)
	if err != nil {
		return nil
	}
	return all
}

// flagIn finds a flag's value in a line.
func flagIn(args []string, name string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
		if arg == "--"+name && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
