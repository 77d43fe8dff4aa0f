package evloop

import (
	"time"

	"golang.org/x/sys/unix"
)

// scan lets the deadlines of a loop's connections pass. A few are cut at a time: clients that came together are due together, and
// each cut may send an answer and bring a new connection; heartbeats have their turn in between.
type scan struct {
	every  int64
	next   int64 // when to look next, ns since the epoch
	cursor int   // the next slot to look at; 0: a scan begins
}

const (
	slotsAtOnce = 1 << 13
	cutsAtOnce  = 4
	cutPause    = int64(4 * time.Millisecond)
)

func (s *scan) init(now int64, timeouts ...time.Duration) {
	s.every = int64(time.Second)
	for _, t := range timeouts {
		s.every = max(int64(time.Millisecond), min(s.every, int64(t/10)))
	}
	s.next = now + s.every
}

// step goes on with the scan, or begins one, when it is time.
func (s *scan) step(l *Loop) {
	if l.now < s.next && s.next-l.now <= s.every { // a clock that was put back does not hold it up
		return
	}
	size := l.front.table.size()
	end, cuts := min(size, s.cursor+slotsAtOnce), 0
	for ; s.cursor < end && cuts < cutsAtOnce; s.cursor++ {
		slot := l.front.table.at(int32(s.cursor))
		if due := slot.due.Load(); due == 0 || due > l.now {
			continue
		}
		if c := slot.conn.Load(); c != nil && c.loop == l && c.lent.Load() == nil {
			l.expire(c)
			cuts++
		}
	}
	switch {
	case s.cursor >= size:
		s.cursor, s.next = 0, l.now+s.every
	default:
		s.next = l.now + cutPause
	}
}

// expire ends a connection whose deadline is over. Whose request has not come whole is told so.
func (l *Loop) expire(c *Conn) {
	defer l.contain(c)
	switch {
	case c.out == nil && (c.in != nil || !c.has(flagServed)):
		l.handOver(c, nil, nil)
	default:
		l.close(c)
	}
}

// pacer spaces the turns of a loop, so that one wake-up serves many. A turn that was full is followed by the next at once, and a
// loop with little to do is not held up either: nothing would come together.
type pacer struct {
	least   int64   // ns between the beginnings of two turns; 0: none
	began   int64   // when this turn began
	handled int     // requests that have begun in this turn
	rate    float64 // requests that begin in `least`, about
}

const (
	fullTurn  = 64 // requests
	busyRate  = 2
	rateTurns = 16 // over how many times `least` the rate is taken
)

func (p *pacer) begin(now int64) {
	if p.least > 0 && now > p.began {
		passed := float64(now-p.began) / float64(p.least)
		weight := min(1, passed/rateTurns)
		p.rate += (float64(p.handled)/passed - p.rate) * weight
	}
	p.began, p.handled = now, 0
}

// pause returns for how long the next turn should wait.
func (p *pacer) pause() time.Duration {
	if p.least == 0 || p.handled >= fullTurn || p.rate < busyRate {
		return 0
	}
	return time.Duration(min(p.least, p.began+p.least-time.Now().UnixNano())) // a clock that was put back holds up nobody
}

// nap sleeps more exactly than a timer of the runtime.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // a signal may end it sooner
}
