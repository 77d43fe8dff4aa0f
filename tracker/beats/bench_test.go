package beats_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lubdub-io/lubdub/internal/redistest"
	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/beats"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/queues"
	"github.com/lubdub-io/lubdub/tracker/schema"
	"github.com/lubdub-io/lubdub/tracker/sweep"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// The benchmarks run against their own real Redis and report, besides the time, what each operation cost Redis: redis-ns/op is CPU time
// of its main thread, read from INFO.

type benchStore struct {
	*tracker.Tracker
	client *redis.Client
}

func newBenchStore(b *testing.B, shards int) *benchStore {
	b.Helper()
	server := redistest.StartServer(b)
	tr, err := tracker.Open(b.Context(), tracker.Options{
		RedisURL: server.URL(), Shards: shards, RedisTimeout: time.Minute,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = tr.Close(context.Background()) })
	client := server.Client()
	b.Cleanup(func() { _ = client.Close() })
	return &benchStore{tr, client}
}

func (s *benchStore) cpu(b *testing.B) time.Duration {
	b.Helper()
	var sum float64
	info := s.client.InfoMap(context.Background(), "cpu").Val()["CPU"]
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		var v float64
		if _, err := fmt.Sscan(info[field], &v); err != nil {
			b.Fatalf("INFO cpu has no %s: %v", field, err)
		}
		sum += v
	}
	return time.Duration(sum * float64(time.Second))
}

// measure times `work`, which does `ops` operations. With -v it logs the share of each Redis command, including those inside scripts;
// what evalsha has beyond all others is the scripts' own time.
func (s *benchStore) measure(b *testing.B, ops int, work func()) {
	before := s.resetStats(b)
	b.ResetTimer()
	work()
	b.StopTimer()
	b.ReportMetric(float64((s.cpu(b)-before).Nanoseconds())/float64(ops), "redis-ns/op")
	s.logCommands(b, ops)
}

// resetStats resets the statistics of commands, and returns the CPU time of Redis.
func (s *benchStore) resetStats(b *testing.B) time.Duration {
	_ = s.client.ConfigResetStat(context.Background())
	return s.cpu(b)
}

// logCommands logs the time of each command since then, with -v.
func (s *benchStore) logCommands(b *testing.B, ops int) {
	if !testing.Verbose() {
		return
	}
	for name, stat := range s.client.InfoMap(context.Background(), "commandstats").Val()["Commandstats"] {
		var calls, usec int64
		if _, err := fmt.Sscanf(stat, "calls=%d,usec=%d", &calls, &usec); err == nil {
			b.Logf("%-20s %6.2f calls/op %8.0f ns/op", name, float64(calls)/float64(ops), float64(usec)*1e3/float64(ops))
		}
	}
}

// pass advances shard time without a beat.
func (s *benchStore) pass(b *testing.B, d time.Duration) {
	for ; d > 0; d -= 200 * time.Millisecond { // less than the longest step of shard time
		if err := s.Beats.Tick(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// claim creates n tasks of a queue, and claims them for a worker.
func (s *benchStore) claim(b *testing.B, n int, change ...func(*model.NewTask)) (attempts []*model.Attempt) {
	w := trackertest.NewWorker(func(w *model.NewWorker) { w.MaxConcurrent = n })
	if err := w.Validate(); err != nil {
		b.Fatal(err)
	}
	worker, err := s.Workers.Register(b.Context(), w)
	if err != nil {
		b.Fatal(err)
	}
	s.create(b, n, append(change, trackertest.Queued)...)
	for len(attempts) < n {
		tasks, err := s.Queues.Claim(b.Context(), queues.ClaimRequest{
			Scope: trackertest.Scope, WorkerID: worker.WorkerID, Queue: "default", Max: queues.MaxClaim,
		})
		if err != nil || len(tasks) == 0 {
			b.Fatalf("claimed %d of %d: %v", len(attempts), n, err)
		}
		for _, task := range tasks {
			attempts = append(attempts, task.Attempt)
		}
	}
	return attempts
}

// create creates n pushed tasks, a thousand per call.
func (s *benchStore) create(b *testing.B, n int, change ...func(*model.NewTask)) []*model.Attempt {
	attempts := make([]*model.Attempt, 0, n)
	for made := 0; made < n; made += 1000 {
		batch := make([]model.NewTask, min(1000, n-made))
		for i := range batch {
			batch[i] = model.NewTask{Scope: trackertest.Scope}
			for _, f := range change {
				f(&batch[i])
			}
			if err := batch[i].Validate(time.Now()); err != nil {
				b.Fatal(err)
			}
		}
		for _, r := range s.Tasks.CreateBatch(b.Context(), batch) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
			if r.Created.Envelope != nil {
				attempts = append(attempts, r.Created.Envelope.Attempt)
			}
		}
	}
	return attempts
}

// beat sends one beat of each attempt, `size` per call.
func (s *benchStore) beat(b *testing.B, attempts []*model.Attempt, size int, report string) {
	batch := make([]*beats.Beat, size)
	for i := range batch {
		batch[i] = &beats.Beat{Report: report}
	}
	for len(attempts) > 0 {
		n := min(size, len(attempts))
		for i, a := range attempts[:n] {
			batch[i].Attempt = a
		}
		s.Beats.BeatMany(batch[:n])
		for _, beat := range batch[:n] {
			if beat.Err != nil {
				b.Fatal(beat.Err)
			}
		}
		attempts = attempts[n:]
	}
}

func BenchmarkCreate(b *testing.B) {
	s := newBenchStore(b, 16)
	b.ReportAllocs()
	s.measure(b, b.N, func() { s.create(b, b.N) })
}

// BenchmarkStart measures the first beat of each attempt, which starts it.
func BenchmarkStart(b *testing.B) {
	s := newBenchStore(b, 16)
	attempts := s.create(b, b.N)
	b.ReportAllocs()
	s.measure(b, b.N, func() { s.beat(b, attempts, 1000, "") })
}

var fullReport = string(schema.AppendReport(nil, 0, []byte("worker-1"), []byte("45"), []byte(`"Processing partition 5 of 10"`)))

// BenchmarkBeats measures beats of 100,000 running tasks in random order.
func BenchmarkBeats(b *testing.B) {
	for _, bench := range []struct {
		name   string
		size   int
		report string
	}{
		{"bare/100", 100, ""}, {"progress/100", 100, fullReport}, {"bare/1000", 1000, ""}, {"progress/1000", 1000, fullReport},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := newBenchStore(b, 16)
			attempts := s.create(b, 100_000)
			s.beat(b, attempts, 1000, fullReport)
			order := make([]*model.Attempt, b.N)
			for i := range order {
				order[i] = attempts[rand.IntN(len(attempts))]
			}
			b.ReportAllocs()
			s.measure(b, b.N, func() { s.beat(b, order, bench.size, bench.report) })
		})
	}
}

// BenchmarkExpire measures the verdicts on 10,000 attempts of one shard, among 100,000, that fell silent at once: pushed tasks, which
// fail, and tasks of a queue that are retried.
func BenchmarkExpire(b *testing.B) {
	const living, dead = 100_000, 10_000
	short := func(n *model.NewTask) { n.HeartbeatInterval, n.HeartbeatTimeout = time.Second/2, time.Second }
	once := func(n *model.NewTask) { // its retry is not due here
		policy := model.DefaultRetryPolicy
		policy.InitialBackoff, policy.MaxBackoff = time.Hour, time.Hour
		n.Retry = &policy
	}
	for name, start := range map[string]func(b *testing.B, s *benchStore, n int) []*model.Attempt{
		"failed":  func(b *testing.B, s *benchStore, n int) []*model.Attempt { return s.create(b, n, short) },
		"retried": func(b *testing.B, s *benchStore, n int) []*model.Attempt { return s.claim(b, n, short, once) },
	} {
		b.Run(name, func(b *testing.B) {
			s := newBenchStore(b, 1)
			s.beat(b, s.create(b, living), 1000, "")
			sweeper := sweep.NewSweeper(s.Tracker.Sweeper, sweep.SweeperOptions{})
			var spent time.Duration
			for range b.N {
				b.StopTimer()
				s.beat(b, start(b, s, dead), 1000, fullReport)
				s.pass(b, 2*time.Second)
				before := s.resetStats(b)
				b.StartTimer()
				r, err := sweeper.RunOnce(b.Context())
				if err != nil || r.Zombies != dead {
					b.Fatalf("%d zombies of %d: %v", r.Zombies, dead, err)
				}
				spent += s.cpu(b) - before
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*dead), "redis-ns/verdict")
			s.logCommands(b, dead)
		})
	}
}
