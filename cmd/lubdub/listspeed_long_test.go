//go:build long

package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/testenv"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// The time until the first row of each `ls`, from the start of the process, with 100,000 tasks and 10,000 workers, compared with a
// process that makes no call. It prints figures; the target is 150 ms.
func TestLongFirstRowOfEachList(t *testing.T) {
	d := newDesk(t, token.RoleViewer)
	fillLists(t, d.redis)
	path := testenv.Program(t, "lubdub")
	lists := [][]string{{"version"}, {"task", "ls"}, {"task", "ls", "--state", "queued", "--queue", "queue-07"}, {"worker", "ls"},
		{"worker", "ls", "--silent"}, {"worker", "ls", "-a", "-o", "wide"},
		{"machine", "ls"}, {"queue", "ls"},
		{"schedule", "ls"}, {"webhook", "ls"}, {"event", "ls"}}
	took := make([][]time.Duration, len(lists))
	for range 15 { // in turns, so that other load on the host affects all equally
		for i, args := range lists {
			took[i] = append(took[i], firstRow(t, d, path, args))
		}
	}
	var alone time.Duration
	for i, args := range lists {
		slices.Sort(took[i])
		median := took[i][len(took[i])/2]
		if i == 0 {
			alone = median
		}
		t.Logf("%-50s median %6.1f ms, worst %6.1f ms, %.1f of a process that sends no request", fmt.Sprint(args), ms(median),
			ms(took[i][len(took[i])-1]), float64(median)/float64(alone))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// firstRow is how long a command takes until its first line, behind a heading, is there. One without rows is timed until its end.
func firstRow(t *testing.T, d *desk, path string, args []string) time.Duration {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, d.environ...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rows := bufio.NewReader(out)
	_, _ = rows.ReadString('\n')
	_, _ = rows.ReadString('\n')
	took := time.Since(began)
	_, _ = io.Copy(io.Discard, rows)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return took
}

// fillLists makes 100,000 tasks in 20 queues, of a hundred runs, and 10,000 workers on 1,000 machines.
func fillLists(t *testing.T, url string) {
	t.Helper()
	const tasks, fleetSize, queues, batch = 100_000, 10_000, 20, 500
	tr, err := tracker.Open(t.Context(), tracker.Options{RedisURL: url, RedisTimeout: 10 * time.Second, WorkerInterval: time.Hour,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close(t.Context()) }()
	scope := model.Scope{Tenant: "default", Workspace: "default"}
	queue := func(i int) string { return fmt.Sprintf("queue-%02d", i%queues) }
	sharedOut(t, fleetSize, func(i int) error {
		_, err := tr.Workers.Register(t.Context(), model.NewWorker{Scope: scope, Queue: queue(i), Types: []string{"x"},
			MachineID: fmt.Sprintf("host-%04d", i/10), MaxConcurrent: 100})
		return err
	})
	sharedOut(t, tasks/batch, func(i int) error {
		news := make([]model.NewTask, batch)
		for j := range news {
			news[j] = model.NewTask{Scope: scope, Queue: queue(j), Type: "x", RunID: fmt.Sprintf("run-%02d", i%100)}
			if err := news[j].Validate(time.Now()); err != nil {
				return err
			}
		}
		for _, r := range tr.Tasks.CreateBatch(t.Context(), news) {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	})
}

// sharedOut does something so many times, 16 at once.
func sharedOut(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < n; i += 16 {
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if wg.Wait(); t.Failed() {
		t.FailNow()
	}
}
