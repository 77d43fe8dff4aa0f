package load

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lightRun is one thread's part of a run.
type lightRun struct {
	*run
	*thread
	tally *Tally
	plan  *schedule     // nil: a closed loop
	due   time.Duration // the next intended time
	ended bool          // the plan has ended
	next  int           // the connection whose turn it is

	underWay, over, backlogged int
	out, in                    []byte
	events                     []unix.EpollEvent
	failed                     error
}

const (
	// lookUp is how often, at least, a thread checks whether the run is over.
	checkInterval = 20 * time.Millisecond
	// inARow is how many requests are sent before answers are read.
	inARow = 64
)

func (l *Light) drive(r *run, i int, tally *Tally) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The kernel may be 50 µs late for a thread, so that it wakes up less often; 0 sets that again.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }()
	t := l.threads[i]
	t.answered.Store(0)
	p := &lightRun{run: r, thread: t, tally: tally, in: make([]byte, 64<<10), events: make([]unix.EpollEvent, 256)}
	if r.PerSecond > 0 {
		p.plan = newSchedule(i, len(l.threads), r.PerSecond, r.Poisson)
		p.due = p.plan.take()
	}
	return p.serve()
}

// serve sends and receives until the run is over.
func (p *lightRun) serve() error {
	if err := p.tidy(); err != nil {
		return err
	}
	for _, c := range p.conns {
		c.source, c.over, c.backlog, c.free = p.Source(c.number, p.total), false, nil, 0
		if c.fd < 0 { // it was closed at the end of a run, or since then
			p.redial(c)
		}
		if p.plan == nil {
			p.begin(c)
		}
	}
	for p.failed == nil && !p.done() {
		p.sendDue()
		n, err := p.wait()
		if err != nil {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, e := range p.events[:n] {
			p.handle(p.conns[e.Fd], e.Events)
		}
	}
	for _, c := range p.conns { // later answers are dropped
		if c.busy {
			c.close()
		}
	}
	return p.failed
}

// tidy closes connections on which something arrives without a request: the server closes those that were idle for too long.
func (p *lightRun) tidy() error {
	for {
		n, err := epollWait(p.epoll, p.events, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			return err
		}
		for _, e := range p.events[:n] {
			p.conns[e.Fd].close()
		}
	}
}

func (p *lightRun) done() bool {
	switch {
	case p.ctx.Err() != nil:
		return true
	case p.stop.Load() || p.plan == nil:
		return p.underWay == 0
	}
	if p.For > 0 && p.clock.now() > p.For+grace {
		p.giveUp()
	}
	return p.underWay == 0 && p.backlogged == 0 && (p.ended || p.over == len(p.conns))
}

// giveUp counts the requests that were not sent because the server was too slow.
func (p *lightRun) giveUp() {
	for _, c := range p.conns {
		if len(c.backlog) > 0 {
			p.tally.Refused(NotSent, int64(len(c.backlog)))
			c.backlog = nil
		}
	}
	p.backlogged = 0
	for ; !p.ended && p.over < len(p.conns); p.advance() {
		p.tally.Refused(NotSent, 1)
	}
}

// advance takes the next intended time from the plan.
func (p *lightRun) advance() {
	p.due = p.plan.take()
	p.ended = p.For > 0 && p.due >= p.For
}

// sendDue sends what is due; a busy connection owes it.
func (p *lightRun) sendDue() {
	if p.plan == nil || p.stop.Load() {
		return
	}
	for range inARow {
		if p.ended || p.failed != nil || p.over == len(p.conns) || p.due > p.clock.now() {
			return
		}
		c := p.conns[p.next]
		p.next = (p.next + 1) % len(p.conns)
		switch {
		case c.over:
		case c.busy:
			c.backlog = append(c.backlog, p.due)
			p.backlogged++
		default:
			p.send(c, p.due)
		}
		p.advance()
	}
}

// wait returns how many connections have events.
func (p *lightRun) wait() (int, error) {
	most := checkInterval
	if p.plan != nil && !p.ended && !p.stop.Load() {
		if p.underWay == 0 && p.clock.skip(p.due) {
			return 0, nil
		}
		most = min(most, max(0, p.due-p.clock.now()))
	}
	n, err := epollWait(p.epoll, p.events, most)
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return n, err
}

// epollWait waits with a precision of nanoseconds; unix.EpollWait only has milliseconds.
func epollWait(epoll int, events []unix.EpollEvent, most time.Duration) (int, error) {
	limit := unix.NsecToTimespec(most.Nanoseconds())
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(unsafe.Pointer(&limit)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.ENOSYS: // before Linux 5.11: the last millisecond without sleep
		return unix.EpollWait(epoll, events, int(most.Milliseconds()))
	}
	return 0, errno
}

// begin sends the first request of a closed loop's connection, however late: so a run on a busy machine has some requests too.
func (p *lightRun) begin(c *lightConn) {
	if !p.halted() {
		p.send(c, p.clock.now())
	}
}

// halted reports whether to stop sending regardless of the time.
func (p *lightRun) halted() bool { return p.stop.Load() || p.failed != nil || p.ctx.Err() != nil }

// proceed continues with a connection that has no request under way.
func (p *lightRun) proceed(c *lightConn) {
	if p.halted() {
		return
	}
	if p.plan == nil {
		if now := p.clock.now(); p.For == 0 || now < p.For {
			p.send(c, now)
		}
		return
	}
	if len(c.backlog) > 0 && !c.over {
		intended := c.backlog[0]
		c.backlog = c.backlog[1:]
		p.backlogged--
		p.send(c, intended)
	}
}

// send sends a request, unless the source has ended.
func (p *lightRun) send(c *lightConn, intended time.Duration) {
	if p.out = c.source.Next(p.out[:0]); p.out == nil {
		c.over = true
		p.over++
		p.backlogged -= len(c.backlog)
		c.backlog = nil
		return
	}
	c.intended, c.sent, c.busy = intended, p.clock.now(), true
	p.underWay++
	p.write(c, p.out)
}

func (p *lightRun) write(c *lightConn, text []byte) {
	n, err := unix.Write(c.fd, text)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		p.broken(c, err)
		return
	}
	waited := len(c.out) > 0
	if c.out = append(c.out[:0], text[max(n, 0):]...); (len(c.out) > 0) != waited {
		events := uint32(unix.EPOLLIN)
		if !waited {
			events |= unix.EPOLLOUT
		}
		_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, c.fd, p.interest(c, events)) // it is known there
	}
}

func (p *lightRun) handle(c *lightConn, events uint32) {
	if events&unix.EPOLLOUT != 0 && len(c.out) > 0 {
		p.write(c, c.out)
	}
	if events&^unix.EPOLLOUT == 0 || c.fd < 0 {
		return
	}
	n, err := unix.Read(c.fd, p.in)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
	case err != nil:
		p.broken(c, err)
	case n == 0:
		p.broken(c, io.EOF)
	default:
		p.received(c, p.in[:n])
	}
}

var errUnrequested = errors.New("bytes without a request")

func (p *lightRun) received(c *lightConn, in []byte) {
	if len(c.in) > 0 {
		c.in = append(c.in, in...)
		in = c.in
	}
	status, body, size, err := answerIn(in)
	switch {
	case err != nil:
		p.broken(c, err)
	case !c.busy || size > 0 && size < len(in):
		p.broken(c, errUnrequested)
	case size > 0:
		p.answered(c, status, body)
	case len(in) > maxAnswer:
		p.broken(c, errTooLarge)
	case len(c.in) == 0:
		c.in = append(c.in, in...)
	}
}

func (p *lightRun) answered(c *lightConn, status int, body []byte) {
	done := p.clock.now()
	beats := c.source.Answered(status, body, p.tally)
	if c.in = c.in[:0]; cap(c.in) > firstBuffer {
		c.in = nil
	}
	p.tally.Requests++
	p.tally.Beats += int64(beats)
	p.thread.answered.Add(1)
	p.recorder.record(p.number, times{c.intended, c.free, c.sent, done})
	c.busy, c.free = false, done
	p.underWay--
	p.proceed(c)
}

// broken counts a connection that failed, and opens it again.
func (p *lightRun) broken(c *lightConn, err error) {
	if c.busy {
		p.underWay--
	}
	c.close()
	if p.stop.Load() {
		return
	}
	p.tally.Refused(reason(err), 1)
	p.redial(c)
	p.proceed(c)
}

func (p *lightRun) redial(c *lightConn) {
	var err error
	for range maxRedials {
		if err = p.connect(p.ctx, c); err == nil || p.ctx.Err() != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.failed = fmt.Errorf("the server takes no connections any more: %w", err)
}
