package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/internal/config"
)

// cli is the command line.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Run the server."`
	Dev     devCmd     `cmd:"" help:"Try Lubdub: server, embedded Redis and a simulated fleet in one process."`
	Token   tokenCmd   `cmd:"" help:"Print a control token."`
	Bench   benchCmd   `cmd:"" help:"Measure Lubdub on this machine, beside baselines, or load a deployment of your own."`
	Plan    planCmd    `cmd:"" help:"Tell what a fleet needs: cores, Redis servers, memory, connections."`
	Config  configCmd  `cmd:"" help:"Print, check and explain the configuration."`
	Health  healthCmd  `cmd:"" help:"Ask a running server whether it is ready; for container health checks."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// settings are the flags of every command that takes the whole configuration.
type settings struct {
	File     string        `name:"config" short:"c" placeholder:"FILE" help:"YAML file with settings (LUBDUB_CONFIG)."`
	Settings config.Config `embed:""`
}

// load reads the effective configuration of the command that was selected.
func (s *settings) load(a *app, k *kong.Context, defaults map[string]string) (*config.Loaded, error) {
	return loadConfig(config.Input{
		File: s.File, Environ: a.environ, Flags: &s.Settings, FlagsSet: flagsSet(k), Defaults: defaults,
	})
}

func loadConfig(in config.Input) (*config.Loaded, error) {
	cfg, err := config.Load(in)
	if err != nil {
		return nil, &mistake{err}
	}
	return cfg, nil
}

// flagsSet lists the flags that stand on the command line. The order of sources is the config package's business,
// so kong is told of no variable and no resolver: its own order puts files over variables.
func flagsSet(k *kong.Context) (names []string) {
	for _, p := range k.Path {
		if p.Flag != nil && !p.Resolved {
			names = append(names, p.Flag.Name)
		}
	}
	return names
}

// mistake is an error of whoever wrote the command line or the configuration.
type mistake struct{ error }

func (m *mistake) Unwrap() error { return m.error }

// run is main without the process around it. It gives the exit code.
func (a *app) run(args []string) (code int) {
	var c cli
	parser, err := kong.New(&c,
		kong.Name("lubdub"),
		kong.Description("Lubdub hears the heartbeats of tasks and tells within milliseconds who has gone silent."),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.NamedMapper("setting", kong.MapperFunc(parseSetting)),
		kong.ValueFormatter(explain),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		panic(err) // a mistake in a struct tag, which every test meets
	}
	// Kong ends the process after it has printed help; here that is a return.
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			code = int(r)
		default:
			panic(r)
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if err != nil {
		a.complain(err)
		fmt.Fprintf(a.stderr, "lubdub: 'lubdub %s' tells what there is\n", helpFor(args, parser.Model))
		return exitMistake
	}
	err = k.Run(a)
	if err == nil {
		return exitOK
	}
	a.complain(err)
	if errors.As(err, new(*mistake)) {
		return exitMistake
	}
	return exitFailed
}

type exit int

func (a *app) complain(err error) {
	for _, line := range config.Problems(err) {
		fmt.Fprintf(a.stderr, "lubdub: %s\n", line)
	}
}

// helpFor is the help command for what was meant: that of the command, when one was named.
func helpFor(args []string, model *kong.Application) string {
	for _, c := range model.Children {
		if slices.Contains(args, c.Name) {
			return c.Name + " --help"
		}
	}
	return "--help"
}

// parseSetting reads a flag with the parser that reads variables and files.
func parseSetting(k *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := k.Scan.PopValueInto("value", &text); err != nil {
		return err
	}
	return config.Parse(text, target)
}

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
	return fmt.Sprintf("%s [%s]", v.Help, strings.Join(notes, ", "))
}
