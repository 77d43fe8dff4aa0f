package load

import (
	"math/rand/v2"
	"time"
)

// schedule is the intended times of one connection of an open loop.
type schedule struct {
	next  float64 // ns since the start
	every float64 // ns
	draws *rand.Rand
	gap   func(*schedule) float64
}

// newSchedule distributes the connections evenly over the first interval, so that the total rate is constant.
func newSchedule(conn, conns int, perSecond float64, poisson bool) *schedule {
	s := &schedule{every: float64(conns) * float64(time.Second) / perSecond, gap: constant}
	if poisson {
		s.draws, s.gap = rand.New(rand.NewPCG(uint64(conn), uint64(conns))), exponential
		s.next = s.gap(s)
		return s
	}
	s.next = s.every * float64(conn) / float64(conns)
	return s
}

func constant(s *schedule) float64    { return s.every }
func exponential(s *schedule) float64 { return s.every * s.draws.ExpFloat64() }

// take returns the next intended time. It never waits: a late answer does not delay the intended times after it.
func (s *schedule) take() time.Duration {
	t := s.next
	s.next += s.gap(s)
	return time.Duration(t)
}
