package evloop

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// bound sends so many requests, and has their answers bound into a sheaf that nobody writes yet. do is called on the loop.
func (s *server) bound(n int, do func(*Loop, *sheaf)) (clients []*client) {
	s.t.Helper()
	for i := range n {
		clients = append(clients, s.dial().send(fmt.Sprintf("w%d\n", i)))
	}
	var held []*asked
	for range n {
		held = append(held, <-s.held)
	}
	s.onAll(func(l *Loop) {
		l.sheaf = l.emptySheaf()
		for _, r := range held {
			r.c.AnswerTold([]byte(r.text+"\n"), false, func() { s.told.Add(1) })
		}
		sheaf := l.sheaf
		l.sheaf = nil
		sheaf.left.Store(int32(n))
		sheaf.next.Store(0)
		do(l, sheaf)
	})
	return clients
}

func wantEach(clients []*client) {
	for i, c := range clients {
		c.wants(fmt.Sprint(i)).send("eafter\n").wants("after")
	}
}

// What is written beside the loop is answered as what the loop writes, be it all of a sheaf, or what the loop has left.
func TestAnswersAreWrittenBesideTheLoop(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const n = 3*writtenAtOnce + 1
	for _, loops := range []int{0, 1, 2} { // so many times the loop takes some
		before := s.told.Load()
		wantEach(s.bound(n, func(l *Loop, sheaf *sheaf) {
			for range loops {
				to := int(sheaf.next.Add(writtenAtOnce))
				for i := to - writtenAtOnce; i < to; i++ {
					a := &sheaf.answers[i]
					a.n, a.err = write(a.c.fd, sheaf.bytes(i))
				}
				sheaf.left.Add(-writtenAtOnce)
			}
			sheaf.helped.Store(true)
			l.beside <- sheaf
		}))
		until(t, func() bool { return s.told.Load() == before+2*n }, func() string { return "not all answers were told" })
	}
	wantEach(s.bound(n, func(l *Loop, sheaf *sheaf) { l.writeSheaf(sheaf) }))
	s.onAll(func(l *Loop) { l.front.cfg.ShareFrom = 0 })
	wantEach(s.bound(n, func(l *Loop, sheaf *sheaf) { l.writeSheaf(sheaf) }))
}

// A connection whose answer may just be written keeps its descriptor until that is over, so that nobody else gets the answer.
func TestAConnectionInASheafKeepsItsDescriptor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	clients := s.bound(2, func(l *Loop, sheaf *sheaf) {
		c := sheaf.answers[1].c
		l.close(c)
		if c.has(flagGone) || l.front.table.at(c.fd).conn.Load() != c {
			t.Error("it was closed though its answer is being written")
		}
		c.AnswerTold([]byte("twice\n"), false, nil)
		if len(sheaf.answers) != 2 || c.out != nil {
			t.Error("a request was answered twice")
		}
		l.writeSheaf(sheaf)
	})
	if got := clients[1].ends(); got != "1\n" {
		t.Errorf("who was to be closed got %q", got)
	}
	wantEach(clients[:1])
	s.opens(1)
}

// A sheaf at which somebody else still looks is not taken again, and one that is too large is written in between.
func TestSheavesAreTakenAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.onAll(func(l *Loop) {
		one, two := l.emptySheaf(), l.emptySheaf()
		l.sheaves = []*sheaf{one, two}
		one.helped.Store(true)
		if got := l.emptySheaf(); got != two || len(l.sheaves) != 1 {
			t.Error("a sheaf was taken that is still looked at")
		}
		l.sheaves = nil
	})
	var all sync.WaitGroup
	const n = mostAnswers + 100
	var held []*asked
	for range n {
		c := s.dial().send("wx\n")
		held = append(held, <-s.held)
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
		for _, sheaf := range l.sheaves {
			if cap(sheaf.answers) > 2*mostAnswers || sheaf.answers[:1][0].c != nil {
				t.Errorf("a sheaf holds %d answers", cap(sheaf.answers))
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
	one := <-s.held
	large := s.dial().send("b" + fmt.Sprint(2*mostBound) + ":" + strings.Repeat("x", 2*mostBound))
	large.wants(strings.Repeat("x", 2*mostBound))
	s.onAll(func(l *Loop) {
		if l.underWay != 1 {
			t.Errorf("%d requests are under way, want 1", l.underWay)
		}
	})
	s.loops[0].Post([]*asked{one})
}
