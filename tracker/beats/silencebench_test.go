package beats_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/tracker/beats"
)

// BenchmarkSilences checks that sampling silences costs at most two hundredths of the CPU time that beats take in Redis. Flushes with and
// without alternate, so that other load on the host affects both equally. Sampling in every flush makes the cost measurable; the share of
// sampled flushes is then applied. It also reports the measured cost at the real sampling rate.
func BenchmarkSilences(b *testing.B) {
	const living, bar, leastTurns, flushes = 10_000, 2.0, 9, 5 * beats.SampledFlushes
	for _, size := range []int{1, 16, 100, 500} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := newBenchStore(b, 16)
			attempts := s.create(b, living)
			s.beat(b, attempts, 1000, fullReport)
			batch := make([]*beats.Beat, size)
			for i := range batch {
				batch[i] = &beats.Beat{Report: fullReport}
			}
			cost := func(flush func([]*beats.Beat)) float64 {
				before := s.cpu(b)
				for range flushes {
					for _, beat := range batch {
						beat.Attempt = attempts[rand.IntN(living)]
					}
					if flush(batch); batch[size-1].Err != nil {
						b.Fatal(batch[size-1].Err)
					}
				}
				return float64(s.cpu(b) - before)
			}
			never, always, asIs := s.Beats.FlusherSampling(0, 0), s.Beats.FlusherSampling(0, 1), s.Beats.Flusher(0)
			cost(never)
			var byAll, byIt, alone []float64
			for range max(leastTurns, b.N) {
				without := cost(never)
				byAll = append(byAll, 100*(cost(always)/without-1)/beats.SampledFlushes)
				byIt = append(byIt, 100*(cost(asIs)/without-1))
				alone = append(alone, without/flushes/float64(time.Microsecond))
			}
			share := middle(byAll)
			b.ReportMetric(share, "%-of-redis")
			b.ReportMetric(middle(byIt), "%-as-it-is")
			b.ReportMetric(middle(alone), "redis-µs/flush")
			if share > bar {
				b.Errorf("in flushes of %d beats it takes %.2f %% of the CPU time of Redis, above %.0f", size, share, bar)
			}
		})
	}
}

func middle(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
