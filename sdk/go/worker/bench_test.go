//go:build go1.25

package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/sdk/go/worker"
)

// used is the CPU that this process has used.
func used(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkNoOp measures claiming, starting and completing a task that does nothing: with a minimal client, on raw connections and with
// net/http, and with a worker; and the cost of the worker for the minimal client, which alternates with it.
func BenchmarkNoOp(b *testing.B) {
	for _, places := range []int{1, 10, 100} {
		bare, byHTTP := bareNoOps(bareConn), bareNoOps(bareHTTP)
		for name, run := range map[string]noOps{"bare": bare, "net-http": byHTTP, "worker": workerNoOps} {
			b.Run(fmt.Sprintf("%s/%d", name, places), func(b *testing.B) {
				cpu := run(b, startServer(b), places, b.N)
				b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
		b.Run(fmt.Sprintf("worker-to-bare/%d", places), func(b *testing.B) {
			addr := startServer(b)
			const turns = 5
			ratios := make([]float64, turns)
			for turn := range ratios {
				n := b.N/turns + 1
				one := bare(b, addr, places, n)
				ratios[turn] = float64(workerNoOps(b, addr, places, n)) / float64(one)
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[turns/2], "×bare")
		})
	}
}

// noOps does n tasks and returns the CPU that this took.
type noOps func(b *testing.B, addr string, places, n int) time.Duration

func workerNoOps(b *testing.B, addr string, places, n int) time.Duration {
	c, err := client.New("http://"+addr, client.Token("control"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(c, "default", worker.Concurrency(places), worker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	var done atomic.Int64
	enough := make(chan struct{})
	w.Handle("job", func(context.Context, *worker.Task) (any, error) {
		if done.Add(1) == int64(n) {
			close(enough)
		}
		return nil, nil
	})
	ended := make(chan error, 1)
	before := used(b)
	go func() { ended <- w.Run(context.Background()) }()
	<-enough
	cpu := used(b) - before
	w.Close()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	return cpu
}

// BenchmarkBeatOfTenThousand is one beat of a worker that holds as many tasks: written, sent over loopback, answered and read.
func BenchmarkBeatOfTenThousand(b *testing.B) {
	const n = 10_000
	addr := startServer(b)
	var beats, bytes atomic.Int64
	carrier := carrier(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/heartbeat") {
			beats.Add(1)
			bytes.Add(r.ContentLength)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	c, err := client.New("http://"+addr, client.Token("control"), client.Transport(carrier))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w, err := worker.New(c, "default", worker.Concurrency(n), worker.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	before := heap()
	var begun atomic.Int64
	finish, all := make(chan struct{}), make(chan struct{})
	w.Handle("job", func(context.Context, *worker.Task) (any, error) {
		if begun.Add(1) == n {
			close(all)
		}
		<-finish
		return nil, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(context.Background()) }()
	<-all
	held := heap() - before
	worker.BeatNow(w)
	beats.Store(0)
	bytes.Store(0)
	cpu := used(b)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		worker.BeatNow(w)
	}
	b.StopTimer()
	b.ReportMetric(float64((used(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(beats.Load())/float64(b.N), "requests/op")
	b.ReportMetric(float64(bytes.Load())/float64(b.N)/n, "wire-B/task")
	b.ReportMetric(float64(held)/n, "heap-B/task")
	close(finish)
	w.Kill()
	<-ended
}

// BenchmarkTenThousandTracked is one round of beats of as many attempts that a process tracks without a worker, with all that the process
// does for them meanwhile: a round is a second, in which their beats are due.
func BenchmarkTenThousandTracked(b *testing.B) {
	const n = 10_000
	addr := startServer(b)
	counts := &beatCounter{}
	c, err := client.New("http://"+addr, client.Token("control"), client.Measure(client.Metrics{Beat: counts.beat}))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	timeout, token := int64(30_000), strings.Repeat("y", 400)
	before := heap()
	attempts := make([]*client.Attempt, n)
	for i := range attempts {
		_, a, err := c.Track(b.Context(), &v1.TaskEnvelope{TaskID: fmt.Sprint("task_", i), Attempt: 1, TaskToken: token,
			HeartbeatIntervalMs: 1000, HeartbeatTimeoutMs: &timeout})
		if err != nil {
			b.Fatal(err)
		}
		attempts[i] = a
	}
	counts.await(b, 3*n) // until all go together
	held := heap() - before
	requests, first := counts.requests.Load(), counts.beats.Load()
	cpu := used(b)
	b.ResetTimer()
	counts.await(b, first+int64(n*b.N))
	b.StopTimer()
	micros := float64((used(b) - cpu).Microseconds()) / float64(b.N)
	b.ReportMetric(micros, "cpu-µs/op")
	b.ReportMetric(micros/100_000, "%-of-a-core-at-10-s")
	b.ReportMetric(float64(counts.requests.Load()-requests)/float64(b.N), "requests/op")
	b.ReportMetric(float64(held)/n, "heap-B/task")
	for _, a := range attempts {
		a.Abandon()
	}
}

// beatCounter counts beats that were accepted, and the requests that brought them.
type beatCounter struct {
	requests, beats atomic.Int64
}

func (c *beatCounter) beat(_ string, attempts int, _ time.Duration) {
	c.requests.Add(1)
	c.beats.Add(int64(attempts))
}

func (c *beatCounter) await(b *testing.B, beats int64) {
	for until := time.Now().Add(time.Minute + time.Duration(b.N)*10*time.Second); c.beats.Load() < beats; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			b.Fatalf("%d of %d beats", c.beats.Load(), beats)
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
