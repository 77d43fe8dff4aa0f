package evloop

import (
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// batch is a set of answers that are sent together. If there are many, the loop and a helper goroutine write them concurrently, each
// taking the next few: writing is most of a loop's work. The helper only writes.
type batch struct {
	b       []byte // the answers, one after the other
	answers []answer
	next    atomic.Int32 // the first answer that neither writer has taken
	left    atomic.Int32 // how many are not written yet; the goroutine that writes the last one notifies the loop
	helped  atomic.Bool  // the helper goroutine may still use the batch
}

type answer struct {
	c      *Conn
	end    int // offset of its end in batch.b; it begins at the end of the one before
	close  bool
	onSent func()
	n      int // how many bytes have been written
	err    unix.Errno
}

const (
	writtenAtOnce = 8       // answers that a writer takes at a time
	mostAnswers   = 1 << 10 // in a batch
	mostBatched   = 4 << 10 // bytes of an answer
)

func (s *batch) add(c *Conn, b []byte, close bool, onSent func()) {
	s.b = append(s.b, b...)
	s.answers = append(s.answers, answer{c: c, end: len(s.b), close: close, onSent: onSent})
}

func (s *batch) bytes(i int) []byte {
	begin := 0
	if i > 0 {
		begin = s.answers[i-1].end
	}
	return s.b[begin:s.answers[i].end]
}

// write writes answers until all are taken, and reports whether it wrote the last one.
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

// receive passes a result of Post to the handler and sends the answers together.
func (l *Loop) receive(m any) {
	l.batch = l.emptyBatch()
	defer func() {
		s := l.batch
		l.batch = nil
		l.writeBatch(s)
	}()
	l.handler.Receive(m)
}

// bind adds an answer to the batch.
func (l *Loop) bind(c *Conn, b []byte, close bool, onSent func()) {
	if len(l.batch.answers) == mostAnswers {
		l.writeBatch(l.batch)
		l.batch = l.emptyBatch()
	}
	c.set(flagBatched)
	l.batch.add(c, b, close, onSent)
}

// emptyBatch returns a batch that no goroutine uses.
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

// writeBatch writes all answers of a batch, alone or together with the helper goroutine.
func (l *Loop) writeBatch(s *batch) {
	s.next.Store(0)
	s.left.Store(int32(len(s.answers)))
	if least := l.front.cfg.ShareFrom; least > 0 && len(s.answers) >= least {
		s.helped.Store(true)
		l.helper <- s // never blocks: the loop has removed what the helper did not take
	}
	last := s.write()
	select {
	case <-l.helper: // the helper has not taken it
		s.helped.Store(false)
	default:
	}
	if last || len(s.answers) == 0 {
		l.settle(s)
	}
}

// help writes answers concurrently with the loop, until the loop ends.
func (l *Loop) help() {
	for s := range l.helper {
		last := s.write()
		s.helped.Store(false)
		if last {
			l.mail.put(s)
		}
	}
}

// settle continues with the connections of a batch that has been written.
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
		a.c.wrote(b, a.n, a.err, a.close || lost, a.onSent)
	}
}
