package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/bench/report"
	"github.com/lubdub-io/lubdub/bench/scenarios"
	"github.com/lubdub-io/lubdub/bench/testbed"
	"github.com/lubdub-io/lubdub/internal/lifecycle"
)

type runCmd struct {
	Scenario    []string      `placeholder:"NAME" help:"Only these scenarios; --list lists them."`
	List        bool          `help:"List the scenarios and end."`
	Quick       bool          `help:"Small counts and one round: a minute or two. Shows that all works; its numbers prove little."`
	Connections int           `default:"256" help:"Connections of the generator."`
	For         time.Duration `placeholder:"DURATION" help:"Length of one stretch of load (4s; quick 1s)."`
	Rounds      int           `placeholder:"N" help:"How often the programs alternate; ratios are the median of the rounds' (3; quick 1)."`
	Tracked     count         `placeholder:"N" help:"Tasks that are tracked where there should be many, such as 200k or 1M (1M; quick 20k; with --url 10k)."`
	Rate        float64       `placeholder:"N" help:"Beats per second of open loops (half of the top rate that was measured)."`
	Poisson     bool          `help:"Open loops draw their gaps from an exponential distribution instead of keeping them constant."`
	Cores       int           `default:"2" placeholder:"N" help:"Cores of the servers and of Redis. The generator gets the others, or all share all where fewer than two are left for it, and with 0."`
	ServerFlag  []string      `placeholder:"FLAG" sep:"none" help:"Give this flag to every Lubdub that is started, such as --server-flag=--shards=4."`
	Lubdub      string        `placeholder:"PATH" help:"The lubdub binary to measure (lubdub, in the folder of this binary)."`
	Redis       string        `placeholder:"URL" help:"Use this Redis instead of private ones. It gets the tasks of the benchmark and keeps them."`
	RedisPID    int           `name:"redis-pid" placeholder:"PID" help:"Process of --redis on this machine, so that its CPU can be read."`
	URL         string        `name:"url" placeholder:"URL" help:"Load this running deployment instead of starting one. BENCH_TOKEN must hold a control token that may create tasks."`
	Baselines   string        `placeholder:"DIR" help:"Folder of the baseline programs (baselines, next to this binary)."`
	Report      string        `placeholder:"PATH" help:"Write PATH.json and PATH.md, or bench.json and bench.md when PATH is a folder."`
}

// count is a number that may end in k or M.
type count int

func (c *count) UnmarshalText(text []byte) error {
	number, times := string(text), 1.0
	switch {
	case strings.HasSuffix(number, "k"):
		number, times = strings.TrimSuffix(number, "k"), 1e3
	case strings.HasSuffix(number, "M"):
		number, times = strings.TrimSuffix(number, "M"), 1e6
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v < 1 || v*times > 50e6 {
		return fmt.Errorf("%q is not a count such as 20000, 200k or 1M, up to 50M", text)
	}
	*c = count(v * times)
	return nil
}

// Run runs the benchmark. An interrupted run still prints its results so far.
func (c *runCmd) Run(a *app, k *kong.Context) error {
	if c.List {
		return c.list(a)
	}
	o, err := c.options(a)
	if err != nil {
		return &mistake{err}
	}
	file, err := reportFile(c.Report)
	if err != nil {
		return &mistake{err}
	}
	o.Command = "lubdub-bench " + withoutSecrets(strings.Join(k.Args, " "))
	ctx, stop := lifecycle.Signals(context.Background(), func(os.Signal) { os.Exit(exitFailed) })
	defer stop()
	r, err := scenarios.Run(ctx, o)
	if r == nil {
		return &mistake{err}
	}
	return errors.Join(err, r.WriteMarkdown(a.stdout), writeReport(a, file, r))
}

var userInfo = regexp.MustCompile(`://[^@/\s]*@`)

// withoutSecrets hides the user and password of URLs.
func withoutSecrets(text string) string { return userInfo.ReplaceAllString(text, "://…@") }

// options sets the options that the flags leave open.
func (c *runCmd) options(a *app) (testbed.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return testbed.Options{}, fmt.Errorf("the folder of this program cannot be found, give --lubdub and --baselines: %w", err)
	}
	dir := filepath.Dir(self)
	program := cmp.Or(c.Lubdub, filepath.Join(dir, "lubdub"))
	version, commit, err := versionOf(program)
	if err != nil {
		return testbed.Options{}, err
	}
	o := testbed.Options{
		Scenarios: c.Scenario, Connections: c.Connections, For: c.For, Rounds: c.Rounds, Tracked: int(c.Tracked),
		Rate: c.Rate, Poisson: c.Poisson, Cores: c.Cores, ServerFlags: c.ServerFlag, RedisURL: c.Redis, RedisPid: c.RedisPID, URL: c.URL,
		Baselines: c.Baselines, Quick: c.Quick, Program: program, Version: version, Commit: commit, Environ: a.environ,
		Progress: a.stderr,
	}
	for _, v := range a.environ {
		if name, value, _ := strings.Cut(v, "="); name == "BENCH_TOKEN" {
			o.Token = value
		}
	}
	if o.URL == "" {
		o.Token = ""
	}
	if o.Baselines == "" {
		o.Baselines = filepath.Join(dir, "baselines")
	}
	forDefault, rounds, tracked := 4*time.Second, 3, 1_000_000
	if c.URL != "" {
		tracked = 10_000
	}
	if c.Quick {
		forDefault, rounds, tracked = time.Second, 1, min(tracked, 20_000)
	}
	if o.For == 0 {
		o.For = forDefault
	}
	if o.Rounds == 0 {
		o.Rounds = rounds
	}
	if o.Tracked == 0 {
		o.Tracked = tracked
	}
	return o, nil
}

// versionOf runs a lubdub binary to get its version and the commit that it was built from.
func versionOf(program string) (version, commit string, err error) {
	out, err := exec.Command(program, "version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s does not run; build it with 'make build', or name another with --lubdub: %w", program, err)
	}
	found := versionLine.FindStringSubmatch(string(out))
	if found == nil {
		return "", "", fmt.Errorf("%s is not lubdub: it printed %q as its version", program, out)
	}
	return found[1], found[2], nil
}

var versionLine = regexp.MustCompile(`^lubdub (\S+) \((?:commit ([^,)]+))?`)

func (c *runCmd) list(a *app) error {
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, s := range scenarios.All {
		fmt.Fprintf(t, "%s\t%s\n", s.Name, s.About)
	}
	return t.Flush()
}

// reportFile checks before the run that the report can be written after it. It returns its name without extension; empty: none is wanted.
func reportFile(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() || strings.HasSuffix(path, string(filepath.Separator)) {
		path = filepath.Join(path, "bench")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("--report: %w", err)
	}
	return path, nil
}

func writeReport(a *app, path string, r *report.Report) error {
	if path == "" {
		return nil
	}
	fmt.Fprintf(a.stdout, "\nThe report is in %s.md and %s.json.\n", path, path)
	return errors.Join(writeFile(path+".json", r.WriteJSON), writeFile(path+".md", r.WriteMarkdown))
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
