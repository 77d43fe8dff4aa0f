//go:build go1.25

package worker_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/worker"
	"github.com/lubdub-io/lubdub/sdk/go/workertest"
)

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A worker logs its own life, with its id.
func TestAWorkerLogsItsLife(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		log := &lines{}
		s := newSite(t, worker.Logger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		s.run(untilDone)
		task, first := s.enqueue(), s.worker.WorkerID()
		time.Sleep(12 * time.Second)
		s.server.Offline(first)
		time.Sleep(25 * time.Second)
		second := s.worker.WorkerID()
		if err := s.stop(); !errors.As(err, new(*worker.Unfinished)) {
			t.Error(err)
		}
		want := []string{
			"Worker registered with ID: " + first, "Heartbeat sent successfully", "Worker " + first + " is lost and registers again",
			"Worker registered with ID: " + second, "Task " + task + " is lost", "Draining: the worker stops", "Deregistering worker ID: " + second,
		}
		if !strings.Contains(log.String(), "active=1 extended=1") {
			t.Errorf("no heartbeat reports the lease that it extended:\n%s", log)
		}
		rest, found := log.String(), true
		for _, line := range want {
			if _, rest, found = strings.Cut(rest, line); !found {
				t.Fatalf("there is no %q, or not in its place, in\n%s", line, log)
			}
		}
	})
}

// Timeouts of workers that leave no room for one Retry-After are taken, and warned of.
func TestShortTimeoutsOfWorkersAreWarnedOf(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{3 * time.Second, 2999 * time.Millisecond} {
			log := &lines{}
			server := workertest.New(t, workertest.MachineTime(), workertest.WorkerBeats(time.Second, timeout))
			s := newSiteOf(t, server, worker.Logger(slog.New(slog.NewTextHandler(log, nil))))
			s.run(untilDone)
			if warned := strings.Contains(log.String(), "no room for one Retry-After"); warned != (timeout < 3*time.Second) {
				t.Errorf("%v: %s", timeout, log)
			}
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}
