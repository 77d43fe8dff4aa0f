package bench

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Options of a run.
type Options struct {
	// Scenarios by name; none: all that the rest allows.
	Scenarios   []string
	Connections int
	// For is the length of one stretch of load, Rounds how often programs alternate.
	For     time.Duration
	Rounds  int
	Tracked int // tasks of the scenarios with many
	// Rate of open loops, beats per second; 0: half of the top rate.
	Rate    float64
	Poisson bool
	// Cores are those of the servers and of Redis; the generator gets the others. Where fewer than two are left for it, and
	// with 0, all share all.
	Cores int
	// ServerFlags are given to every Lubdub that is started.
	ServerFlags []string
	// RedisURL names a Redis to use instead of private ones, RedisPid its process when it runs here.
	RedisURL string
	RedisPid int
	// URL names a running deployment to load instead of starting one, Token a control token for it.
	URL, Token string
	// Baselines is the folder of the baseline programs.
	Baselines string
	// Quick means small counts.
	Quick bool

	// Program is the lubdub binary, Version its version, Commit what it was built from, Environ what it is started with
	// besides its own variables.
	Program, Version, Commit string
	Environ                  []string
	// Command is the command line, for the report.
	Command string
	// Progress is where the progress goes; Terminal reports whether a line there can be overwritten.
	Progress io.Writer
	Terminal bool
}

// few tasks are tracked where the number does not matter.
const few = 10_000

func (o *Options) validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Connections < 1 {
		refuse("--connections %d: it takes at least one", o.Connections)
	}
	if o.For < 100*time.Millisecond {
		refuse("--for %v is too short to measure anything; give at least 100ms", o.For)
	}
	if o.Rounds < 1 {
		refuse("--rounds %d: it takes at least one", o.Rounds)
	}
	if o.Tracked < o.Connections {
		refuse("--tracked %d: give at least one task for each of the %d connections", o.Tracked, o.Connections)
	}
	if o.Rate < 0 {
		refuse("--rate %v is negative", o.Rate)
	}
	if o.Cores < 0 {
		refuse("--cores %d is negative", o.Cores)
	}
	if o.URL != "" && len(o.ServerFlags) > 0 {
		refuse("--server-flag is for servers that the benchmark starts, so it does not go with --url")
	}
	if o.URL != "" && o.RedisURL != "" {
		refuse("--url loads a deployment that has its Redis, so it does not go with --redis")
	}
	if o.URL != "" && !strings.HasPrefix(o.URL, "http://") {
		refuse("--url %s: the generator speaks plain http:// only; load the deployment behind what ends its TLS", o.URL)
	}
	if (o.URL == "") != (o.Token == "") {
		refuse("--url needs a control token that may create tasks, and only --url does: make one with 'lubdub token --role dispatcher' and " +
			"give it as BENCH_TOKEN")
	}
	if o.RedisPid != 0 && o.RedisURL == "" {
		refuse("--redis-pid tells whose CPU to read for --redis; without it Redis is private, and known")
	}
	for _, name := range o.Scenarios {
		s := find(name)
		switch {
		case s == nil:
			refuse("there is no scenario %q; 'lubdub-bench --list' lists them", name)
		case o.URL != "" && s.needs > aDeployment:
			refuse("scenario %s starts processes of its own, so it does not go with --url", name)
		case o.RedisURL != "" && s.needs > aRedis:
			refuse("scenario %s needs a Redis of its own, so it does not go with --redis", name)
		}
	}
	return errors.Join(errs...)
}

// chosen are the scenarios to run, in the order of the list.
func (o *Options) chosen() (list []*scenario) {
	for _, s := range scenarios {
		if len(o.Scenarios) > 0 && !slices.Contains(o.Scenarios, s.name) || len(o.Scenarios) == 0 && s.asked() ||
			o.URL != "" && s.needs > aDeployment || o.RedisURL != "" && s.needs > aRedis {
			continue
		}
		list = append(list, s)
	}
	return list
}
