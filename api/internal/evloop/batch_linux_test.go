package evloop

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// bound sends n requests and collects their answers in a batch that is not written yet. do is called on the loop.
func (s *server) bound(n int, do func(*Loop, *batch)) (clients []*client) {
	s.t.Helper()
	for i := range n {
		clients = append(clients, s.dial().send(fmt.Sprintf("w%d\n", i)))
	}
	var held []*echoRequest
	for range n {
		held = append(held, s.next())
	}
	s.onAll(func(l *Loop) {
		l.batch = l.emptyBatch()
		for _, r := range held {
			r.c.AnswerThen([]byte(r.text+"\n"), false, func() { s.sent.Add(1) })
		}
		batch := l.batch
		l.batch = nil
		batch.left.Store(int32(n))
		batch.next.Store(0)
		do(l, batch)
	})
	return clients
}

func wantEach(clients []*client) {
	for i, c := range clients {
		c.wants(fmt.Sprint(i)).send("eafter\n").wants("after")
	}
}

// Answers that the helper goroutine writes equal those that the loop writes, for a whole batch or a part of it.
func TestAnswersAreWrittenConcurrentlyWithTheLoop(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const n = 3*writtenAtOnce + 1
	for _, loops := range []int{0, 1, 2} { // so many times the loop takes some
		before := s.sent.Load()
		wantEach(s.bound(n, func(l *Loop, batch *batch) {
			for range loops {
				to := int(batch.next.Add(writtenAtOnce))
				for i := to - writtenAtOnce; i < to; i++ {
					a := &batch.answers[i]
					a.n, a.err = write(a.c.fd, batch.bytes(i))
				}
				batch.left.Add(-writtenAtOnce)
			}
			batch.helped.Store(true)
			l.helper <- batch
		}))
		until(t, func() bool { return s.sent.Load() == before+2*n }, func() string { return "not all answers were reported as sent" })
	}
	wantEach(s.bound(n, func(l *Loop, batch *batch) { l.writeBatch(batch) }))
	s.onAll(func(l *Loop) { l.front.cfg.ShareFrom = 0 })
	wantEach(s.bound(n, func(l *Loop, batch *batch) { l.writeBatch(batch) }))
}

// A connection whose answer may be in a write keeps its descriptor until the write has ended, so no other connection gets the answer.
func TestAConnectionInABatchKeepsItsDescriptor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clients := s.bound(2, func(l *Loop, batch *batch) {
		c := batch.answers[1].c
		l.close(c)
		if c.has(flagClosed) || l.front.table.at(c.fd).conn.Load() != c {
			t.Error("it was closed though its answer is being written")
		}
		c.AnswerThen([]byte("twice\n"), false, nil)
		if len(batch.answers) != 2 || c.out != nil {
			t.Error("a request was answered twice")
		}
		l.writeBatch(batch)
	})
	if got := clients[1].ends(); got != "1\n" {
		t.Errorf("who was to be closed got %q", got)
	}
	wantEach(clients[:1])
	s.opens(1)
}

// A batch that the helper goroutine still uses is not reused, and one that is too large is written in between.
func TestBatchesAreTakenAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.onAll(func(l *Loop) {
		one, two := l.emptyBatch(), l.emptyBatch()
		l.batches = []*batch{one, two}
		one.helped.Store(true)
		if got := l.emptyBatch(); got != two || len(l.batches) != 1 {
			t.Error("a batch was taken that is still looked at")
		}
		l.batches = nil
	})
	var all sync.WaitGroup
	const n = mostAnswers + 100
	var held []*echoRequest
	for range n {
		c := s.dial().send("wx\n")
		held = append(held, s.next())
		all.Go(func() {
			if got, err := c.in.ReadString('\n'); err != nil || got != "x\n" {
				t.Errorf("%q %v", got, err)
			}
			_ = c.Close()
		})
	}
	s.loops[0].Post(held)
	all.Wait()
	s.opens(0)
	s.onAll(func(l *Loop) {
		for _, batch := range l.batches {
			if cap(batch.answers) > 2*mostAnswers || batch.answers[:1][0].c != nil {
				t.Errorf("a batch holds %d answers", cap(batch.answers))
			}
		}
	})
}

// A loop to which many wait for their answers does not pause: nothing else comes.
func TestALoopWithManyRequestsUnderWayDoesNotPause(t *testing.T) {
	t.Parallel()
	l := &Loop{pace: pacer{least: int64(time.Hour), began: time.Now().UnixNano(), rate: 2 * busyRate}}
	for _, c := range []struct {
		underWay int
		pauses   bool
	}{{0, true}, {fullTurn - 1, true}, {fullTurn, false}} {
		if l.underWay = c.underWay; (l.pause() > 0) != c.pauses {
			t.Errorf("with %d under way it pauses for %v", c.underWay, l.pause())
		}
	}
	s := serve(t)
	s.dial().send("wone\n")
	one := s.next()
	large := s.dial().send("b" + fmt.Sprint(2*mostBatched) + ":" + strings.Repeat("x", 2*mostBatched))
	large.wants(strings.Repeat("x", 2*mostBatched))
	s.onAll(func(l *Loop) {
		if l.underWay != 1 {
			t.Errorf("%d requests are under way, want 1", l.underWay)
		}
	})
	s.loops[0].Post([]*echoRequest{one})
}
