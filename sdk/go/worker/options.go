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

// Option configures a worker that New creates.
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
	limited     bool // taskTimeout was set by the user
	stops       bool // softStop and hardStop were set by the user
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

// Types sets the types to claim, each of which needs a handler. By default those with a handler are claimed.
func Types(types ...string) Option {
	return func(s *settings) error {
		s.types = append(s.types, types...)
		return nil
	}
}

// Runtimes adds runtimes that tasks may require, in addition to go and the version of Go, which are detected.
func Runtimes(runtimes ...string) Option {
	return func(s *settings) error {
		s.runtimes = append(s.runtimes, runtimes...)
		return nil
	}
}

// Labels sets the labels by which workers are selected, in addition to pod, namespace, node, zone and deployment, which are read from
// POD_NAME, POD_NAMESPACE, NODE_NAME, ZONE and DEPLOYMENT in the environment. Labels given here take precedence.
func Labels(labels map[string]string) Option {
	return func(s *settings) error {
		maps.Copy(s.labels, labels)
		return nil
	}
}

// Name sets the name shown to people; it also distinguishes this process from others on its machine. Default: POD_NAME or the program name.
func Name(name string) Option {
	return func(s *settings) error {
		s.name = name
		return nil
	}
}

// MachineID sets the id of the host. The default is NODE_NAME or the host name.
func MachineID(id string) Option {
	return func(s *settings) error {
		s.machineID = id
		return nil
	}
}

// Version sets the version of the program. The default is the version that the go command recorded in it.
func Version(version string) Option {
	return func(s *settings) error {
		s.version = version
		return nil
	}
}

// Concurrency sets how many tasks run at once. The default is 100.
func Concurrency(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("worker: with a concurrency of %d nothing is done; 1 is the least", n)
		}
		s.concurrency = n
		return nil
	}
}

// TaskTimeout limits how long a task may run: then its handler's context ends with ErrTaskTimeout, and it fails as TIMEOUT. 0: no limit.
// The default is 5 minutes, and no limit for tasks with their own runTimeoutMs, which the server enforces.
func TaskTimeout(d time.Duration) Option {
	return func(s *settings) error {
		s.taskTimeout, s.limited = d, true
		return notNegative("TaskTimeout", d)
	}
}

// StopWithin sets how long after the beginning of a stop handlers are cancelled (soft), and how long after it unfinished tasks are given
// back (hard). By default both follow the environment variable TERMINATION_GRACE_PERIOD_SECONDS, which should equal the orchestrator's
// grace period, such as Kubernetes' terminationGracePeriodSeconds: hard is a sixth of it before its end, 5 s at most; soft is a
// fifth of hard before that, 5 s at most. Without the variable they are 20 s and 25 s.
func StopWithin(soft, hard time.Duration) Option {
	return func(s *settings) error {
		s.softStop, s.hardStop, s.stops = soft, hard, true
		return nil
	}
}

// Watchdog ends tasks that report no progress for this long: they fail as TIMEOUT. It is off by default.
func Watchdog(d time.Duration) Option {
	return func(s *settings) error {
		s.watchdog = d
		return notNegative("Watchdog", d)
	}
}

// Probe makes the process answer GET requests at an address, such as ":8081": 200 while its beats are on time, 503 otherwise. The server
// gets its URL and, if it probes, requests it before it declares the worker dead. If url is empty it is http://<host's name>:<port>/.
func Probe(addr, url string) Option {
	return func(s *settings) error {
		s.probe, s.probeURL = addr, url
		return nil
	}
}

// Logger sets the logger for what the worker does. The default is slog.Default.
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

// limitOf returns how long a task may run here; 0: no limit.
func (s *settings) limitOf(e *v1.TaskEnvelope) time.Duration {
	if !s.limited && e.RunTimeoutMs > 0 {
		return 0
	}
	return s.taskTimeout
}

// decideStops derives the stops from the orchestrator's grace period unless the user has set them, and refuses those that it would cut off.
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
