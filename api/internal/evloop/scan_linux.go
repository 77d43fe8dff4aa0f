package evloop

import (
	"time"

	"github.com/lubdub-io/lubdub/api/internal/conn"
)

// scan enforces the deadlines of a loop's connections. It cuts a few at a time: clients that connected together are due together, and each
// cut may send an answer and lead to a new connection. Heartbeats are served in between.
type scan struct {
	every  int64
	next   int64 // when to look next, ns since the epoch
	cursor int   // the next slot to check; 0: a scan begins
}

const slotsAtOnce = 1 << 13

func (s *scan) init(now int64, timeouts ...time.Duration) {
	s.every = int64(time.Second)
	for _, t := range timeouts {
		s.every = max(int64(time.Millisecond), min(s.every, int64(t/10)))
	}
	s.next = now + s.every
}

// step continues the scan, or begins one when it is due.
func (s *scan) step(l *Loop) {
	if l.now < s.next && s.next-l.now <= s.every { // not delayed by a clock that was set back
		return
	}
	size := l.front.table.size()
	end, cuts := min(size, s.cursor+slotsAtOnce), 0
	for ; s.cursor < end && cuts < conn.CutsAtOnce; s.cursor++ {
		slot := l.front.table.at(int32(s.cursor))
		if due := slot.due.Load(); due == 0 || due > l.now {
			continue
		}
		if c := slot.conn.Load(); c != nil && c.loop == l && c.loan.Load() == nil {
			l.expire(c)
			cuts++
		}
	}
	switch {
	case s.cursor >= size:
		s.cursor, s.next = 0, l.now+s.every
	default:
		s.next = l.now + int64(conn.CutPause)
	}
}

// expire ends a connection whose deadline has passed. A client whose request is incomplete gets an answer. An idle client gets none: it may
// be sending a request just now, and would take that for its answer. A request that arrived in time is served, because the loop
// itself may have been late, for example after its process was stopped.
func (l *Loop) expire(c *Conn) {
	defer l.contain(c)
	switch {
	case c.out != nil:
		l.close(c)
	case c.in != nil:
		l.handOff(c, nil, nil)
	default:
		l.closeUnheard(c)
	}
}
