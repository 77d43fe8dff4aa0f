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
	"github.com/lubdub-io/lubdub/tracker/trackertest"
)

// The benchmarks run against a real Redis of their own and report, besides the time, what each operation cost
// Redis: redis-ns/op is CPU time of its main thread, read from INFO.

type benchStore struct {
	*tracker.Tracker
	client *redis.Client
}

func newBenchStore(b *testing.B) *benchStore {
	b.Helper()
	server := redistest.StartServer(b)
	tr, err := tracker.Open(b.Context(), tracker.Options{
		RedisURL: server.URL(), Shards: 16, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
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

// measure times work, which does ops operations. With -v it logs what each Redis command took of that, those
// inside scripts included; what evalsha has more than all others is the scripts' own.
func (s *benchStore) measure(b *testing.B, ops int, work func()) {
	_ = s.client.ConfigResetStat(context.Background())
	before := s.cpu(b)
	b.ResetTimer()
	work()
	b.StopTimer()
	b.ReportMetric(float64((s.cpu(b)-before).Nanoseconds())/float64(ops), "redis-ns/op")
	if testing.Verbose() {
		for name, stat := range s.client.InfoMap(context.Background(), "commandstats").Val()["Commandstats"] {
			var calls, usec int64
			if _, err := fmt.Sscanf(stat, "calls=%d,usec=%d", &calls, &usec); err == nil {
				b.Logf("%-20s %6.2f calls/op %8.0f ns/op", name, float64(calls)/float64(ops), float64(usec)*1e3/float64(ops))
			}
		}
	}
}

// create makes n pushed tasks, a thousand a call.
func (s *benchStore) create(b *testing.B, n int, change ...func(*tracker.NewTask)) []*tracker.Attempt {
	attempts := make([]*tracker.Attempt, 0, n)
	for len(attempts) < n {
		batch := make([]tracker.NewTask, min(1000, n-len(attempts)))
		for i := range batch {
			batch[i] = tracker.NewTask{Scope: trackertest.Scope}
			for _, f := range change {
				f(&batch[i])
			}
			if err := batch[i].Validate(time.Now()); err != nil {
				b.Fatal(err)
			}
		}
		for _, r := range s.CreateBatch(b.Context(), batch) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
			attempts = append(attempts, r.Created.Envelope.Attempt)
		}
	}
	return attempts
}

// beat beats every one of them once, size a call.
func (s *benchStore) beat(b *testing.B, attempts []*tracker.Attempt, size int, report string) {
	beats := make([]*tracker.Beat, size)
	for i := range beats {
		beats[i] = &tracker.Beat{Report: report}
	}
	for len(attempts) > 0 {
		n := min(size, len(attempts))
		for i, a := range attempts[:n] {
			beats[i].Attempt = a
		}
		s.Beats(beats[:n])
		for _, beat := range beats[:n] {
			if beat.Err != nil {
				b.Fatal(beat.Err)
			}
		}
		attempts = attempts[n:]
	}
}

func BenchmarkCreate(b *testing.B) {
	s := newBenchStore(b)
	b.ReportAllocs()
	s.measure(b, b.N, func() { s.create(b, b.N) })
}

// BenchmarkStart is the first beat of each attempt, which starts it.
func BenchmarkStart(b *testing.B) {
	s := newBenchStore(b)
	attempts := s.create(b, b.N)
	b.ReportAllocs()
	s.measure(b, b.N, func() { s.beat(b, attempts, 1000, "") })
}

var fullReport = string(tracker.AppendReport(nil, 0, []byte("worker-1"), []byte("45"), []byte(`"Processing partition 5 of 10"`)))

// BenchmarkBeats beats 100,000 running tasks in random order.
func BenchmarkBeats(b *testing.B) {
	for _, bench := range []struct {
		name   string
		size   int
		report string
	}{
		{"bare/100", 100, ""}, {"progress/100", 100, fullReport}, {"bare/1000", 1000, ""}, {"progress/1000", 1000, fullReport},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := newBenchStore(b)
			attempts := s.create(b, 100_000)
			s.beat(b, attempts, 1000, fullReport)
			order := make([]*tracker.Attempt, b.N)
			for i := range order {
				order[i] = attempts[rand.IntN(len(attempts))]
			}
			b.ReportAllocs()
			s.measure(b, b.N, func() { s.beat(b, order, bench.size, bench.report) })
		})
	}
}

// BenchmarkExpire is the verdict about one of very many attempts that fell silent at once.
func BenchmarkExpire(b *testing.B) {
	s := newBenchStore(b)
	s.beat(b, s.create(b, b.N, func(n *tracker.NewTask) {
		n.HeartbeatInterval, n.HeartbeatTimeout = time.Second/2, time.Second
	}), 1000, fullReport)
	for range 10 { // shard time runs on for two seconds without a beat
		if err := s.Tick(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond) // less than the most that shard time runs on in one step
	}
	sweeper := tracker.NewSweeper(s.Tracker, tracker.SweeperOptions{})
	s.measure(b, b.N, func() {
		r, err := sweeper.RunOnce(b.Context())
		if err != nil || r.Zombies != b.N {
			b.Fatalf("%d zombies of %d: %v", r.Zombies, b.N, err)
		}
	})
}
