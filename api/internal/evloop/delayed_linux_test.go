package evloop

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lubdub-io/lubdub/api/internal/conn"
)

// A loop that was late, as after its process was stopped, serves what has come meanwhile, though no connection had the time.
func TestALateLoopServesWhatHasCome(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var clients []*client
	for range 2 * conn.CutsAtOnce {
		clients = append(clients, s.dial().send("ehello\n").wants("hello"))
	}
	silent := s.dial().send("ehello\n").wants("hello")
	until(t, func() (idle bool) {
		s.onLoop(func() { idle = s.loops[0].underWay == 0 })
		return idle
	}, func() string { return "answers are not settled" })
	l := s.loops[0]
	stopped, resume := make(chan struct{}), make(chan struct{})
	l.Post(func(*Loop) {
		close(stopped)
		<-resume
		s.table.each(func(c *Conn) { c.slot.due.Store(1) })
		l.scan.next = 1
	})
	<-stopped
	for _, c := range clients {
		c.send("hagain\neonce more\n")
	}
	until(t, func() bool {
		come := 0
		s.table.each(func(c *Conn) {
			if n, err := unix.IoctlGetInt(int(c.fd), unix.TIOCINQ); err == nil && n > 0 {
				come++
			}
		})
		return come == len(clients)
	}, func() string { return "what was sent has not come" })
	close(resume)
	for _, c := range clients {
		c.wants("again", "once more")
	}
	if got := silent.ends(); got != "" {
		t.Errorf("who has sent nothing got %q", got)
	}
}

// A response that was built before shutdown began does not announce that its connection ends, so what the client sent after it is answered.
func TestWhatIsSentBehindAnAnswerOfBeforeTheEndIsAnswered(t *testing.T) {
	t.Parallel()
	for _, behind := range []struct{ early, late string }{{"wtwo\n", ""}, {"", "wtwo\n"}, {"wt", "wo\n"}} {
		s := serve(t)
		c := s.dial().send("wone\n" + behind.early)
		first := s.next()
		_ = s.Gate().Close()
		s.onLoop(func() {}) // the end has begun
		c.send(behind.late)
		until(t, func() (there bool) {
			s.onLoop(func() { there = first.c.readable || first.c.in != nil && behind.late == "" })
			return there
		}, func() string { return "what was sent has not come" })
		s.loops[0].Post(func(*Loop) { first.c.Answer([]byte("one\n"), false) })
		second := s.next()
		s.loops[0].Post([]*echoRequest{second})
		if got := c.ends(); got != "one\ntwo\n" {
			t.Errorf("%q: got %q", behind, got)
		}
		idle := serve(t)
		c = idle.dial().send("wone\n")
		first = idle.next()
		_ = idle.Gate().Close()
		idle.loops[0].Post(func(*Loop) { first.c.Answer([]byte("one\n"), false) })
		if got := c.ends(); got != "one\n" {
			t.Errorf("who has sent nothing more got %q", got)
		}
	}
}

// onLoop has the first loop do something, and waits until it has.
func (s *server) onLoop(do func()) {
	s.t.Helper()
	did := make(chan struct{})
	s.loops[0].Post(func(*Loop) { do(); close(did) })
	select {
	case <-did:
	case <-time.After(patience):
		s.t.Fatal("the loop does nothing")
	}
}
