package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"time"
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
	softStop    time.Duration
	hardStop    time.Duration
	watchdog    time.Duration
	probe       string
	probeURL    string
	log         *slog.Logger
}

func defaults() *settings {
	return &settings{
		labels: map[string]string{}, concurrency: 100, taskTimeout: 5 * time.Minute, softStop: 20 * time.Second, hardStop: 25 * time.Second,
		log: slog.Default(),
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

// TaskTimeout is how long a task may take here: its handler's context ends with ErrTaskTimeout, and it fails as TIMEOUT. 5 minutes
// unless told; 0: no bound.
func TaskTimeout(d time.Duration) Option {
	return func(s *settings) error {
		s.taskTimeout = d
		return notNegative("TaskTimeout", d)
	}
}

// StopWithin says how long after it was told to stop the worker lets handlers go on (soft, 20 s unless told), and how long until what
// still runs is given back (hard, 25 s). Both must lie within the grace that the process has, such as Kubernetes'
// terminationGracePeriodSeconds, which is checked where TERMINATION_GRACE_PERIOD_SECONDS tells it.
func StopWithin(soft, hard time.Duration) Option {
	return func(s *settings) error {
		s.softStop, s.hardStop = soft, hard
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

// checkStops refuses stops that the orchestrator would cut off.
func (s *settings) checkStops() error {
	if s.softStop < 0 || s.hardStop < s.softStop {
		return fmt.Errorf("worker: the hard stop, after %v, must not come before the soft one, after %v; see StopWithin", s.hardStop, s.softStop)
	}
	seconds, err := strconv.Atoi(os.Getenv("TERMINATION_GRACE_PERIOD_SECONDS"))
	if grace := time.Duration(seconds) * time.Second; err == nil && s.hardStop >= grace {
		return fmt.Errorf("worker: the process is killed %v after it was told to stop, which leaves no time for a hard stop after %v; "+
			"lower StopWithin, or raise terminationGracePeriodSeconds", grace, s.hardStop)
	}
	return nil
}
