package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	operator "github.com/lubdub-io/lubdub/internal/cli"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/internal/lifecycle"
)

// cli is the command line.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the server."`
	Dev     devCmd     `cmd:"" help:"Try Lubdub: server, embedded Redis and a simulated fleet in one process."`
	Token   tokenCmd   `cmd:"" help:"Print, inspect and revoke tokens."`
	Bench   benchCmd   `cmd:"" hidden:"" passthrough:"" help:"Moved to lubdub-bench."`
	Plan    planCmd    `cmd:"" help:"Estimate what a fleet needs: cores, Redis servers, memory, connections."`
	Config  configCmd  `cmd:"" help:"Print, check and explain the configuration."`
	Metrics metricsCmd `cmd:"" help:"Explain the metrics."`
	Health  healthCmd  `cmd:"" help:"Check whether a running server is ready; for container health checks."`
	Version versionCmd `cmd:"" help:"Print the version."`
	Explain helpCmd    `cmd:"" name:"help" help:"Print help, also for a command."`

	operator.Commands `embed:""`
}

// settings are the flags of commands that read the whole configuration.
type settings struct {
	File     string        `name:"config" short:"c" type:"setting" placeholder:"FILE" help:"YAML file with settings (LUBDUB_CONFIG)."`
	Settings config.Config `embed:""`
}

// load reads the effective configuration of the selected command.
func (s *settings) load(a *app, k *kong.Context, defaults map[string]string) (*config.Loaded, error) {
	return loadConfig(config.Input{
		File: s.File, Environ: a.environ, Flags: &s.Settings, FlagsSet: append(flagsSet(k), a.removed...), BadFlags: a.badFlags,
		Problems: a.strays, Defaults: defaults,
	})
}

// loadConfig returns the valid part of the configuration even if there are mistakes in it.
func loadConfig(in config.Input) (*config.Loaded, error) {
	cfg, err := config.Load(in)
	if err != nil {
		return cfg, &mistake{err}
	}
	return cfg, nil
}

// flagsSet lists the flags on the command line. The config package determines the order of sources, so kong knows no variable and no
// resolver: its own order puts files over variables.
func flagsSet(k *kong.Context) (names []string) {
	for _, p := range k.Path {
		if p.Flag != nil && !p.Resolved {
			names = append(names, p.Flag.Name)
		}
	}
	return names
}

// mistake is an error in the command line or the configuration.
type mistake struct{ error }

func (m *mistake) Unwrap() error { return m.error }

// run is main without the process. It returns the exit code.
func (a *app) run(args []string) (code int) {
	var c cli
	a.badFlags, a.strays, a.removed = map[string]string{}, nil, nil
	parser, err := kong.New(&c,
		kong.Name("lubdub"),
		kong.Description("Lubdub tracks the heartbeats of tasks and workers, and detects within milliseconds which have gone silent."),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(code int) { panic(exitRequest(code)) }),
		kong.NamedMapper("setting", kong.MapperFunc(a.parseSetting)),
		kong.ValueFormatter(explain),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		panic(err) // an invalid struct tag, which every test finds
	}
	leaveEnums(parser.Model)
	// Kong ends the process after it has printed help; here it returns instead.
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exitRequest:
			code = int(r)
		default:
			panic(r)
		}
	}()
	if operator.Complete(a.env(), parser) {
		return exitOK
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == "--version" { // not a flag of the model, where it would hide the --version of commands
		args = slices.Concat([]string{"version"}, args[1:])
	}
	k, err := a.parse(parser, operator.FlagsBehind(args))
	if err == nil {
		if err = a.perform(k); err == nil {
			return exitOK
		}
	} else {
		err = &mistake{err}
	}
	a.complain(err)
	if k == nil || len(a.strays) > 0 {
		if command := nounFirst(args, parser.Model); command != "" {
			fmt.Fprintf(a.stderr, "lubdub: the noun comes first: 'lubdub %s'\n", command)
		}
		fmt.Fprintf(a.stderr, "Run 'lubdub %s' for usage.\n", helpFor(args, parser.Model))
	}
	if errors.As(err, new(*mistake)) {
		return exitMistake
	}
	return exit.Code(err)
}

// env is the environment of the operator's commands.
func (a *app) env() *session.Env {
	return &session.Env{Context: context.Background(), Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, Environ: a.environ,
		CheckRedis: a.checkRedis}
}

// perform runs the selected command. The operator's commands get a context that ends when they are interrupted.
func (a *app) perform(k *kong.Context) error {
	if err := operator.EmptyFlags(k); err != nil {
		return err
	}
	env := a.env()
	if operator.Has(k.Selected()) {
		ctx, stop := lifecycle.Signals(env.Context, a.leave)
		defer stop()
		env.Context = ctx
	}
	return k.Run(a, env)
}

// leave ends an operator's command immediately.
func (a *app) leave(s os.Signal) {
	fmt.Fprintf(a.stderr, "lubdub: %v again: stopped at once; the last request may have been applied\n", s)
	os.Exit(exitFailed)
}

// leaveEnums lets the configuration check the values of enums: kong would stop at the first invalid one.
func leaveEnums(model *kong.Application) {
	_ = kong.Visit(model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Tag.Type == "setting" {
			flag.Enum, flag.Tag.Enum = "", ""
		}
		return next(nil)
	})
}

// parse parses the command line. Unknown flags and excess arguments are all collected, not only the first. A command that loads the
// configuration reports them with all other mistakes; for any other command they are the error. Flags of settings that were removed
// are collected separately, for the configuration to warn about.
func (a *app) parse(parser *kong.Kong, args []string) (*kong.Context, error) {
	k, err := parser.Parse(args)
	for stray := strayIn(err); stray != ""; stray = strayIn(err) {
		rest := without(args, stray)
		if len(rest) == len(args) {
			break
		}
		if name := strings.TrimPrefix(stray, "--"); config.IsRemoved(name) && loads(contextOf(err)) {
			a.removed = append(a.removed, name)
		} else {
			a.strays = append(a.strays, err.Error())
		}
		args = rest
		k, err = parser.Parse(args)
	}
	if len(a.strays) == 0 && err == nil {
		return k, nil
	}
	if err == nil && loads(k) {
		return k, nil
	}
	var all []error
	for _, stray := range a.strays {
		all = append(all, errors.New(stray))
	}
	return nil, errors.Join(append(all, err)...)
}

// loader is a command that reads the whole configuration before it does anything.
type loader interface {
	load(*app, *kong.Context, map[string]string) (*config.Loaded, error)
}

func loads(k *kong.Context) bool {
	node := k.Selected()
	if node == nil {
		return false
	}
	_, ok := node.Target.Addr().Interface().(loader)
	return ok
}

var (
	unknownFlag   = regexp.MustCompile(`^unknown flag (--?[^\s,=]+)`)
	strayArgument = regexp.MustCompile(`^unexpected argument ([^\s,=]+)`)
)

// contextOf returns how far kong came before an error.
func contextOf(err error) *kong.Context {
	failed := new(kong.ParseError)
	errors.As(err, &failed)
	return failed.Context
}

// strayIn returns the part of the command line that kong's error calls unknown, or "". If the command does not load the configuration,
// an argument was meant as a subcommand.
func strayIn(err error) string {
	failed := new(kong.ParseError)
	if !errors.As(err, &failed) {
		return ""
	}
	if flag := unknownFlag.FindStringSubmatch(err.Error()); flag != nil {
		return flag[1]
	}
	if argument := strayArgument.FindStringSubmatch(err.Error()); argument != nil && loads(failed.Context) {
		return argument[1]
	}
	return ""
}

// without removes an argument and, if it is a flag, what appears to be its value.
func without(args []string, stray string) []string {
	for i, arg := range args {
		if name, _, _ := strings.Cut(arg, "="); name != stray {
			continue
		}
		n := 1
		if i > 0 && arg == stray && strings.HasPrefix(stray, "-") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			n = 2
		}
		return slices.Concat(args[:i], args[i+n:])
	}
	return args
}

// exitRequest is kong's request to end with this code after it has printed help.
type exitRequest int

func (a *app) complain(err error) {
	if exit.IsReported(err) {
		return
	}
	if m := new(mistake); errors.As(err, &m) {
		err = m.error
	}
	for _, line := range config.Problems(err) {
		fmt.Fprintf(a.stderr, "lubdub: %s\n", line)
	}
}

// nounFirst reorders arguments that begin with a verb, as in kubectl: "get workers" means "worker get".
func nounFirst(args []string, model *kong.Application) string {
	if len(args) < 2 {
		return ""
	}
	for _, noun := range model.Children {
		for _, verb := range noun.Children {
			if noun.Name == strings.TrimSuffix(args[1], "s") && (verb.Name == args[0] || slices.Contains(verb.Aliases, args[0])) {
				return noun.Name + " " + verb.Name
			}
		}
	}
	return ""
}

// helpFor returns the help command for the intended command, if one was named.
func helpFor(args []string, model *kong.Application) string {
	for _, c := range model.Children {
		if slices.Contains(args, c.Name) {
			return c.Name + " --help"
		}
	}
	return "--help"
}

// parseSetting parses a flag with the parser of variables and files. The configuration reports an invalid value with its other mistakes.
// A negative number is a value, though it looks like a flag.
func (a *app) parseSetting(k *kong.DecodeContext, target reflect.Value) error {
	if next := k.Scan.Peek(); !next.IsValue() && !belowZero.MatchString(next.String()) {
		a.badFlags[k.Value.Name] = "it has no value; write for example --" + k.Value.Name + "=" + k.Value.Flag.FormatPlaceHolder()
		return nil
	}
	text := k.Scan.Pop().String()
	if err := config.Parse(text, target); err != nil {
		a.badFlags[k.Value.Name] = err.Error()
	}
	return nil
}

var belowZero = regexp.MustCompile(`^-[0-9.]`)

// explain adds a setting's default and variable to its help.
func explain(v *kong.Value) string {
	f, ok := config.Lookup(v.Name)
	if !ok || v.Tag.Type != "setting" {
		return kong.DefaultHelpValueFormatter(v)
	}
	notes := []string{f.Env}
	if f.Default != "" {
		notes = append([]string{"default " + f.Default}, notes...)
	}
	return fmt.Sprintf("%s %s [%s]", v.Help, f.Who, strings.Join(notes, ", "))
}
