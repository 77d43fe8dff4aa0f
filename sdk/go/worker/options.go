package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Option changes what New makes.
type Option func(*settings) error

type settings struct {
	types       []string
	runtimes    []string
	labels      map[string]string
	name        string
	machineID   string
	version     string
	concurrency int
	taskTimeout time.Duration
	limited     bool // taskTimeout is the user's
	stops       bool // softStop and hardStop are
	softStop    time.Duration
	hardStop    time.Duration
	watchdog    time.Duration
	probe       string
	probeURL    string
	log         *slog.Logger
}

func defaults() *settings {
	return &settings{
		labels: map[string]string{}, concurrency: 100, taskTimeout: 5 * time.Minute, log: slog.Default(),
	}
}

// Types are the types that are claimed, each of which needs a handler; unless told, those that have one.
func Types(types ...string) Option {
	return func(s *settings) error {
		s.types = append(s.types, types...)
		return nil
	}
}

// Runtimes are what tasks may ask for, besides go and the version of Go, which are found.
func Runtimes(runtimes ...string) Option {
	return func(s *settings) error {
		s.runtimes = append(s.runtimes, runtimes...)
		return nil
	}
}

// Labels are what workers are selected by, besides pod, namespace, node, zone and deployment, which POD_NAME, POD_NAMESPACE, NODE_NAME,
// ZONE and DEPLOYMENT in the environment say; these go first.
func Labels(labels map[string]string) Option {
	return func(s *settings) error {
		maps.Copy(s.labels, labels)
		return nil
	}
}

// Name is for people, and part of what tells this process from others on its machine; unless told, POD_NAME or the program's name.
func Name(name string) Option {
	return func(s *settings) error {
		s.name = name
		return nil
	}
}

// MachineID is the host; unless told, NODE_NAME or the host's name.
func MachineID(id string) Option {
	return func(s *settings) error {
		s.machineID = id
		return nil
	}
}

// Version is that of the program; unless told, what the go command noted.
func Version(version string) Option {
	return func(s *settings) error {
		s.version = version
		return nil
	}
}

// Concurrency is how many tasks are done at once; 100 unless told.
func Concurrency(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("worker: with a concurrency of %d nothing is done; 1 is the least", n)
		}
		s.concurrency = n
		return nil
	}
}

// TaskTimeout is how long a task may take here: its handler's context ends with ErrTaskTimeout, and it fails as TIMEOUT. 0: no bound.
// Without this option it is 5 minutes, and no bound for tasks with a runTimeoutMs of their own, which the server enforces.
func TaskTimeout(d time.Duration) Option {
	return func(s *settings) error {
		s.taskTimeout, s.limited = d, true
		return notNegative("TaskTimeout", d)
	}
}

// StopWithin sets how long after the beginning of a stop handlers are cancelled (soft), and how long after it what still runs is given
// back (hard). Without this option they follow the environment variable TERMINATION_GRACE_PERIOD_SECONDS, which should be what the
// orchestrator allows, such as Kubernetes' terminationGracePeriodSeconds: hard is a sixth of it before its end, 5 s at most; soft is a
// fifth of hard before that, 5 s at most. Without the variable they are 20 s and 25 s.
func StopWithin(soft, hard time.Duration) Option {
	return func(s *settings) error {
		s.softStop, s.hardStop, s.stops = soft, hard, true
		return nil
	}
}

// Watchdog ends tasks that report no progress for this long: they fail as TIMEOUT. Off unless told.
func Watchdog(d time.Duration) Option {
	return func(s *settings) error {
		s.watchdog = d
		return notNegative("Watchdog", d)
	}
}

// Probe has the process answer GET requests at an address, such as ":8081": 200 while its own beats go on, 503 when they do not. Its
// URL is told to the server, which asks there, where it probes, before it takes the worker for dead; url: empty is
// http://<host's name>:<port>/.
func Probe(addr, url string) Option {
	return func(s *settings) error {
		s.probe, s.probeURL = addr, url
		return nil
	}
}

// Logger is told what the worker does; slog.Default unless told.
func Logger(log *slog.Logger) Option {
	return func(s *settings) error {
		if log == nil {
			return errors.New("worker: the logger is nil; leave the option out, or give slog.New(slog.DiscardHandler)")
		}
		s.log = log
		return nil
	}
}

func notNegative(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("worker: %s is negative: %v; 0 switches it off", name, d)
	}
	return nil
}

// limitOf is how long a task may take here; 0: no bound.
func (s *settings) limitOf(e *v1.TaskEnvelope) time.Duration {
	if !s.limited && e.RunTimeoutMs > 0 {
		return 0
	}
	return s.taskTimeout
}

// decideStops sets the stops by the orchestrator's grace where the user has not, and refuses those that it would cut off.
func (s *settings) decideStops() error {
	seconds, err := strconv.Atoi(os.Getenv("TERMINATION_GRACE_PERIOD_SECONDS"))
	grace, known := time.Duration(seconds)*time.Second, err == nil && seconds > 0
	if !known {
		grace = 30 * time.Second
	}
	if !s.stops {
		s.hardStop = grace - min(5*time.Second, grace/6)
		s.softStop = s.hardStop - min(5*time.Second, s.hardStop/5)
	}
	if s.softStop < 0 || s.hardStop < s.softStop {
		return fmt.Errorf("worker: the hard stop, after %v, must not come before the soft one, after %v; see StopWithin", s.hardStop, s.softStop)
	}
	if known && s.hardStop >= grace {
		return fmt.Errorf("worker: the orchestrator kills the process %v after SIGTERM, which leaves no time for a hard stop after %v; "+
			"lower StopWithin, or raise terminationGracePeriodSeconds", grace, s.hardStop)
	}
	return nil
}
