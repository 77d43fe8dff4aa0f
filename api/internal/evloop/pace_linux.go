package evloop

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// wait waits until something is ready, or due. Where it has to wait it yields first: what the turn has started, such as a flush, then
// runs here instead of waking another thread. Where it has not, others that compute would only hold it up.
func (l *Loop) wait() int {
	if len(l.ready) > 0 {
		return l.poll(0)
	}
	if pause := l.pause(); pause > 0 {
		runtime.Gosched()
		nap(l.pause())
	}
	if n := l.poll(0); n > 0 {
		return n
	}
	runtime.Gosched()
	if !l.mail.sleep() {
		return 0
	}
	defer l.mail.awake()
	return l.poll(l.untilDue())
}

// poll waits for events for so many ms.
func (l *Loop) poll(ms int) int {
	n, err := unix.EpollWait(l.epoll, l.events, ms)
	if err != nil {
		return 0 // EINTR
	}
	return n
}

// untilDue returns for how many ms the loop may wait for events.
func (l *Loop) untilDue() int {
	due := l.scan.next
	if at := l.front.accept.due(l); at != 0 {
		due = min(due, at)
	}
	wait := min(max(0, due-time.Now().UnixNano()), l.scan.every)
	return int((wait + int64(time.Millisecond) - 1) / int64(time.Millisecond))
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

// pause returns for how long the loop should wait before it looks again. Where many wait for their answers nothing comes but what
// these bring on: a pause would hold up all of them.
func (l *Loop) pause() time.Duration {
	if l.underWay >= fullTurn {
		return 0
	}
	return l.pace.pause()
}

// nap sleeps more exactly than a timer of the runtime.
func nap(d time.Duration) {
	if d <= 0 {
		return
	}
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // a signal may end it sooner
}
