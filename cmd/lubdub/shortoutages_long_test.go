//go:build long

package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const (
	shortOutages   = 30
	diesPerOutage  = 1 // so that few are silent at a time (fewLate in tracker/sweep/heldtime.go)
	shortPlay      = 2 * time.Minute
	defaultPeriod  = 15 * time.Second // health-check-period
	shortLiveTasks = 1000
)

// Redis is away 30 times for 1 to 5 s within two minutes, without a balancer and at the default health-check-period. No live task is
// declared dead, and dead ones are found within 3 s (p99) of their timeout, the outages not counted.
func TestLongShortOutages(t *testing.T) {
	o := outage{name: "short outages", period: defaultPeriod}
	s := o.stage(t)
	s.add(shortLiveTasks, false)
	var dies []chan struct{}
	for range shortOutages {
		s.silent = make(chan struct{})
		dies = append(dies, s.silent)
		s.add(diesPerOutage, true)
	}
	time.Sleep(s.interval) // all are in their rhythm

	var away [][2]time.Time
	end := time.Now().Add(shortPlay)
	for i := range shortOutages {
		close(dies[i])
		// What is left of the time, after 3 s for each outage still to come, is divided among the pauses.
		left := time.Until(end) - time.Duration(shortOutages-i)*3*time.Second
		time.Sleep(rand.N(max(2*left/time.Duration(shortOutages-i), 100*time.Millisecond)))
		began := time.Now()
		s.must(s.redis.Freeze())
		time.Sleep(time.Second + rand.N(4*time.Second))
		s.must(s.redis.Thaw())
		away = append(away, [2]time.Time{began, time.Now()})
	}
	until(t, "all the dead are found", func() bool { return s.verdicts() >= shortOutages*diesPerOutage })

	var late []time.Duration
	for _, e := range s.events() {
		if !e.verdict() {
			continue
		}
		m := s.members[e.subject]
		if m == nil || !m.mortal {
			t.Errorf("%s of %s, which is alive: %s", e.kind, e.subject, e.text)
			continue
		}
		due := time.UnixMilli(m.last.Load()).Add(s.timeout)
		for _, a := range away {
			if a[1].UnixMilli() > m.last.Load() && a[0].Before(due) {
				due = due.Add(a[1].Sub(a[0]))
			}
		}
		late = append(late, time.UnixMilli(e.data.DetectedAtMs).Sub(due))
	}
	slices.Sort(late)
	p99 := late[len(late)*99/100]
	t.Logf("%d outages, %d dead among %d: found %v (p50), %v (p99), %v (worst) after timeout and outage; clients were held up for %v",
		len(away), len(late), shortLiveTasks+len(late), late[len(late)/2], p99, late[len(late)-1], s.heldUp())
	if p99 > 3*time.Second+s.heldUp() {
		t.Errorf("dead tasks are found %v late (p99)", p99)
	}
}
