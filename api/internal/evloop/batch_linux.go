package evloop

import (
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// batch is answers that have come together. Where they are many the loop and a goroutine beside it write them, each as many as it
// comes to: to write is the most of what a loop does. Nothing but the writes is done beside the loop.
type batch struct {
	b       []byte // the answers, one behind the other
	answers []answer
	next    atomic.Int32 // the first one that nobody writes
	left    atomic.Int32 // how many are not written; who writes the last one has the loop settle all
	helped  atomic.Bool  // the goroutine beside the loop may look at it
}

type answer struct {
	c     *Conn
	end   int // of its bytes, which begin where those before end
	close bool
	told  func()
	n     int // so many of them have been written
	err   unix.Errno
}

const (
	writtenAtOnce = 8       // answers that one of the two takes at a time
	mostAnswers   = 1 << 10 // of a batch
	mostBatched   = 4 << 10 // bytes of an answer
)

func (s *batch) add(c *Conn, b []byte, close bool, told func()) {
	s.b = append(s.b, b...)
	s.answers = append(s.answers, answer{c: c, end: len(s.b), close: close, told: told})
}

func (s *batch) bytes(i int) []byte {
	begin := 0
	if i > 0 {
		begin = s.answers[i-1].end
	}
	return s.b[begin:s.answers[i].end]
}

// write writes answers until none is left that nobody writes, and reports whether it wrote the last one.
func (s *batch) write() bool {
	last, all := false, len(s.answers)
	for {
		to := int(s.next.Add(writtenAtOnce))
		from := to - writtenAtOnce
		if from >= all {
			return last
		}
		to = min(to, all)
		for i := from; i < to; i++ {
			a := &s.answers[i]
			a.n, a.err = write(a.c.fd, s.bytes(i))
		}
		last = s.left.Add(int32(from-to)) == 0
	}
}

// landed has the handler take what Post brought. Its answers go out together.
func (l *Loop) landed(m any) {
	l.batch = l.emptyBatch()
	defer func() {
		s := l.batch
		l.batch = nil
		l.writeBatch(s)
	}()
	l.handler.Landed(m)
}

// bind puts an answer into the batch.
func (l *Loop) bind(c *Conn, b []byte, close bool, told func()) {
	if len(l.batch.answers) == mostAnswers {
		l.writeBatch(l.batch)
		l.batch = l.emptyBatch()
	}
	c.set(flagBatched)
	l.batch.add(c, b, close, told)
}

// emptyBatch returns one that nobody looks at.
func (l *Loop) emptyBatch() *batch {
	for i, s := range l.batches {
		if !s.helped.Load() {
			l.batches = slices.Delete(l.batches, i, i+1)
			s.b, s.answers = s.b[:0], s.answers[:0]
			return s
		}
	}
	return new(batch)
}

// writeBatch writes all answers of a batch, or has some of them written beside the loop.
func (l *Loop) writeBatch(s *batch) {
	s.next.Store(0)
	s.left.Store(int32(len(s.answers)))
	if least := l.front.cfg.ShareFrom; least > 0 && len(s.answers) >= least {
		s.helped.Store(true)
		l.beside <- s // there is room: what was not taken from there the loop has taken back
	}
	last := s.write()
	select {
	case <-l.beside: // nobody has come to it
		s.helped.Store(false)
	default:
	}
	if last || len(s.answers) == 0 {
		l.settle(s)
	}
}

// help writes answers beside the loop, until there is no loop.
func (l *Loop) help() {
	for s := range l.beside {
		last := s.write()
		s.helped.Store(false)
		if last {
			l.mail.put(s)
		}
	}
}

// settle goes on with the connections of a batch that has been written.
func (l *Loop) settle(s *batch) {
	for i := range s.answers {
		l.settleOne(&s.answers[i], s.bytes(i))
	}
	clear(s.answers)
	l.batches = append(l.batches, s)
}

func (l *Loop) settleOne(a *answer, b []byte) {
	defer l.contain(a.c)
	a.c.unset(flagBatched)
	switch lost := a.c.has(flagLost); {
	case lost && a.n < len(b):
		l.close(a.c)
	default:
		a.c.wrote(b, a.n, a.err, a.close || lost, a.told)
	}
}
