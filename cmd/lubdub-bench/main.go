// Command lubdub-bench measures Lubdub: it starts the lubdub binary, Redis and the baselines as processes, and loads them.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/bench/costs"
	"github.com/lubdub-io/lubdub/bench/report"
)

type cli struct {
	Run   runCmd   `cmd:"" default:"withargs" help:"Measure Lubdub on this machine, next to baselines, or load a running deployment. The default."`
	Costs costsCmd `cmd:"" help:"Print the costs in a report, for 'lubdub plan --costs'."`
}

// app is the environment of a command; tests replace it.
type app struct {
	stdout, stderr io.Writer
	environ        []string
}

// Exit codes.
const (
	exitFailed  = 1
	exitMistake = 2 // the command line is wrong; nothing was started
)

// mistake is an error in the command line.
type mistake struct{ error }

func main() {
	a := &app{stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	os.Exit(a.run(os.Args[1:]))
}

// run is main without the process. It returns the exit code.
func (a *app) run(args []string) (code int) {
	type exit int
	defer func() { // kong ends the process after it has printed help
		switch r := recover().(type) {
		case nil:
		case exit:
			code = int(r)
		default:
			panic(r)
		}
	}()
	parser, err := kong.New(&cli{},
		kong.Name("lubdub-bench"),
		kong.Description("Starts Lubdub, Redis and the baselines as processes, loads one after the other over real sockets, and reports CPU per "+
			"heartbeat, rates, latencies and detection lag. See docs/benchmarks.md."),
		kong.Writers(a.stdout, a.stderr), kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}))
	if err != nil {
		panic(err) // an invalid struct tag, which every test finds
	}
	k, err := parser.Parse(args)
	if err != nil {
		err = &mistake{err}
	} else {
		err = k.Run(a)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(a.stderr, "lubdub-bench: %v\n", err)
	if errors.As(err, new(*mistake)) {
		return exitMistake
	}
	return exitFailed
}

type costsCmd struct {
	Report string `arg:"" help:"JSON report of a whole run."`
}

func (c *costsCmd) Run(a *app) error {
	r, err := report.ReadFile(c.Report)
	if err != nil {
		return &mistake{err}
	}
	measured, err := costs.FromReport(c.Report, r)
	if err != nil {
		return &mistake{err}
	}
	out := json.NewEncoder(a.stdout)
	out.SetIndent("", "  ")
	return out.Encode(measured)
}
