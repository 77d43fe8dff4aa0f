package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*completionCmd) Help() string {
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

func (c *completionCmd) Run(env *Env) error {
	_, err := io.WriteString(env.Stdout, completions[c.Shell])
	return err
}

// Complete answers a shell that asks how its line may go on; false: none asks.
func Complete(env *Env, parser *kong.Kong) (bool, error) {
	if env.Getenv("COMP_LINE") == "" {
		return false, nil
	}
	command, err := kongcompletion.Command(parser, kongcompletion.WithPredictors(predictors(env)))
	if err != nil {
		return true, err
	}
	repeat(parser.Model.Node, command)
	completer := complete.New(parser.Model.Name, command)
	completer.Out = env.Stdout
	completer.Complete()
	return true, nil
}

// mostArguments is how many ids of one command are completed.
const mostArguments = 20

// repeat has an argument that may come many times completed many times.
func repeat(node *kong.Node, command complete.Command) {
	for _, child := range node.Children {
		if sub, ok := command.Sub[child.Name]; ok {
			repeat(child, sub)
		}
	}
	args, ok := command.Args.(*kongcompletion.PositionalPredictor)
	if !ok || len(node.Positional) == 0 || !node.Positional[len(node.Positional)-1].IsCumulative() {
		return
	}
	for last := args.Predictors[len(args.Predictors)-1]; len(args.Predictors) < mostArguments; {
		args.Predictors = append(args.Predictors, last)
	}
}

// predictors know what values there are, by the tag of flags and arguments.
func predictors(env *Env) map[string]complete.Predictor {
	return map[string]complete.Predictor{
		"task": ids(env, tasks), "worker": ids(env, workers), "machine": ids(env, machines), "queue": ids(env, queues),
		"schedule": ids(env, schedules), "webhook": ids(env, webhooks),
		"any": complete.PredictFunc(func(a complete.Args) []string {
			return slices.Concat(ids(env, workers).Predict(a), ids(env, machines).Predict(a), ids(env, tasks).Predict(a))
		}),
		"context": complete.PredictFunc(func(complete.Args) []string { return contextNames(env) }),
		"state":   wordsOf(v1.States), "status": wordsOf(v1.WorkerStatuses), "liveness": wordsOf([]v1.Liveness{v1.Fresh, v1.Late, v1.Lost}),
	}
}

func wordsOf[T ~string](all []T) complete.Predictor {
	var words []string
	for _, w := range all {
		words = append(words, string(w))
	}
	return complete.PredictSet(words...)
}

func contextNames(env *Env) []string {
	path, err := contexts.Path(env.Getenv)
	if err != nil {
		return nil
	}
	file, err := contexts.Load(path)
	if err != nil {
		return nil
	}
	return file.Names()
}

// patienceOfAShell is how long a line may wait for its completion.
const patienceOfAShell = 2 * time.Second

// ids asks the server that the line means. A shell is told nothing of what goes wrong.
func ids[T any](env *Env, k *kind[T]) complete.Predictor {
	return complete.PredictFunc(func(a complete.Args) []string {
		quiet := *env
		quiet.Stderr = io.Discard
		common := &Common{
			Context: flagIn(a.All, "context"), Server: flagIn(a.All, "server"), Tenant: flagIn(a.All, "tenant"),
			Workspace: flagIn(a.All, "workspace"), Timeout: patienceOfAShell, Output: "name",
		}
		s, err := common.open(&quiet)
		if err != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(env.Context, patienceOfAShell)
		defer cancel()
		all, err := k.ids(ctx, s)
		if err != nil {
			return nil
		}
		return all
	})
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
