package evloop

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// wait waits until something is ready or due. Before it sleeps it yields, so that work which the turn has started, such as a flush, runs on
// this thread instead of waking another one. If something is ready it does not yield: goroutines that compute would only delay it.
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

// poll waits up to ms milliseconds for events.
func (l *Loop) poll(ms int) int {
	n, err := unix.EpollWait(l.epoll, l.events, ms)
	if err != nil {
		return 0 // EINTR
	}
	return n
}

// untilDue returns how many milliseconds the loop may wait for events.
func (l *Loop) untilDue() int {
	due := l.scan.next
	if at := l.front.accept.due(l); at != 0 {
		due = min(due, at)
	}
	wait := min(max(0, due-time.Now().UnixNano()), l.scan.every)
	return int((wait + int64(time.Millisecond) - 1) / int64(time.Millisecond))
}

// pacer spaces the turns of a loop, so that one wake-up serves many requests. The turn after a full one begins immediately, and a loop
// with little to do is not delayed, because there would be nothing to collect.
type pacer struct {
	least   int64   // ns between the beginnings of two turns; 0: no minimum
	began   int64   // when this turn began
	handled int     // requests that have begun in this turn
	rate    float64 // requests that begin in `least`, estimated
}

const (
	fullTurn  = 64 // requests
	busyRate  = 2
	rateTurns = 16 // over how many times `least` the rate is averaged
)

func (p *pacer) begin(now int64) {
	if p.least > 0 && now > p.began {
		passed := float64(now-p.began) / float64(p.least)
		weight := min(1, passed/rateTurns)
		p.rate += (float64(p.handled)/passed - p.rate) * weight
	}
	p.began, p.handled = now, 0
}

// pause returns how long the next turn should wait.
func (p *pacer) pause() time.Duration {
	if p.least == 0 || p.handled >= fullTurn || p.rate < busyRate {
		return 0
	}
	return time.Duration(min(p.least, p.began+p.least-time.Now().UnixNano())) // bounded in case the clock is set back
}

// pause returns how long the loop should wait before it looks again. If many clients wait for their answers, new requests come only after
// those answers, so a pause would delay all of them.
func (l *Loop) pause() time.Duration {
	if l.underWay >= fullTurn {
		return 0
	}
	return l.pace.pause()
}

// nap sleeps more precisely than a timer of the runtime.
func nap(d time.Duration) {
	if d <= 0 {
		return
	}
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // a signal may end it sooner
}
