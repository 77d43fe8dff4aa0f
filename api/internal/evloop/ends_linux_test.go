package evloop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lubdub-io/lubdub/api/internal/conn"
	"github.com/lubdub-io/lubdub/internal/shares"
)

// quick is a server that soon gives up on clients, and not on those which a busy machine keeps waiting.
func quick(c *Config) {
	c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = 2*time.Second, 2*time.Second, 2*time.Second
}

// At its deadline an incomplete request is handed over, to be answered; an idle connection is closed; one that waits for its answer stays.
func TestDeadlinesPass(t *testing.T) {
	t.Parallel()
	s := serve(t, quick)
	waits := s.dial().send("whello\n")
	r := s.next()
	halves, idles := map[string]*client{}, map[string]*client{}
	for _, half := range []string{"e", "b100:", "ehello\nehalf", "hhello\nehalf"} {
		halves[half] = s.dial().send(half)
	}
	for _, idle := range []string{"ehello\n", "hhello\n"} {
		idles[idle] = s.dial().send(idle)
	}
	silent := s.dial()
	for half, c := range halves {
		got := c.ends()
		if answer, whole := strings.CutPrefix(got, "hello\n"); whole != strings.HasPrefix(half[min(1, len(half)):], "hello") ||
			!strings.HasPrefix(answer, "sorry") || !strings.Contains(answer, os.ErrDeadlineExceeded.Error()) {
			t.Errorf("%q: got %q", half, got)
		}
	}
	for idle, c := range idles {
		if got := c.ends(); got != "hello\n" {
			t.Errorf("%q: got %q", idle, got)
		}
	}
	if got := silent.ends(); got != "" {
		t.Errorf("who has sent nothing got %q", got)
	}
	s.opens(1)
	s.loops[0].Post([]*echoRequest{r})
	waits.wants("hello")
	s.opens(0)
}

// A request that trickles in has no more time than one that does not, also when it is handed over in its middle.
func TestATrickleIsCutOff(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{"e", "b1000:", "ehello\ne"} {
		t.Run(begin, func(t *testing.T) {
			t.Parallel()
			s := serve(t, quick)
			c := s.dial().send(begin)
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				for _, err := c.Write([]byte("x")); err == nil; _, err = c.Write([]byte("x")) {
					time.Sleep(20 * time.Millisecond) // the pace of the attack
				}
			}()
			<-closed // it was closed, before which it could send for ever
			s.opens(0)
		})
	}
}

// A client that does not read keeps one answer buffered, is not read from, and is closed in the end.
func TestReadersThatDoNotRead(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"g1000000\n", "m1000000\n"} {
		s := serve(t, func(c *Config) { c.WriteTimeout = time.Second })
		c := s.dial()
		_ = c.SetReadBuffer(4 << 10)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for {
				if _, err := c.Write([]byte(strings.Repeat(request, 100))); err != nil {
					return
				}
			}
		}()
		<-sent // it was closed, before which it could not send for ever
		s.opens(0)
		if n := s.sent.Load(); n > 10 {
			t.Errorf("%d answers of 1 MB were written to a client that reads nothing", n)
		}
	}
}

// An answer is sent in as many parts as it takes, and reported when the last has been sent.
func TestAnswersLargerThanTheSocketTakes(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial().send("g5000000\neafter\n")
	s.opens(1)
	c.wants(strings.Repeat("g", 5_000_000), "after")
	until(t, func() bool { return s.sent.Load() == 2 }, func() string { return fmt.Sprintf("%d answers were sent", s.sent.Load()) })
	c = s.dial().send("g5000000\n")
	c.wants2("g")
	_ = c.SetLinger(0)
	_ = c.Close()
	s.opens(1)
	if n := s.sent.Load(); n != 2 {
		t.Errorf("an answer that the client did not read was reported as sent: %d", n)
	}
}

// wants2 reads a part of an answer.
func (c *client) wants2(part string) {
	c.t.Helper()
	b := make([]byte, len(part))
	if _, err := c.in.Read(b); err != nil || string(b) != part {
		c.t.Fatalf("got %q %v, want %q", b, err, part)
	}
}

// Very many connections that come and go leave neither a descriptor nor a goroutine.
func TestTenThousandConnectionsLeaveNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *Config) { c.Loops = 2 })
	const waves, each = 20, 500
	for wave := range waves {
		var all sync.WaitGroup
		for i := range each {
			all.Go(func() {
				c, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = c.Write([]byte([]string{"", "e", "ehello\n", "hhello\n", "b5000:abc", "g300000\n"}[i%6]))
				if i%7 == 0 {
					_ = c.(*net.TCPConn).SetLinger(0)
				}
				_ = c.Close()
			})
		}
		all.Wait()
		if wave == 0 {
			s.opens(0)
		}
	}
	s.opens(0)
	s.table.each(func(c *Conn) { t.Errorf("descriptor %d has a connection", c.fd) })
	// The handler may still answer a request whose client has gone.
	var underWay atomic.Int64
	until(t, func() bool {
		underWay.Store(0)
		s.onAll(func(l *Loop) { underWay.Add(int64(l.underWay)) })
		return underWay.Load() == 0
	}, func() string { return fmt.Sprintf("%d requests are under way", underWay.Load()) })
	if _, leaving := s.watch.Count(); leaving != 0 {
		t.Errorf("%d leave", leaving)
	}
}

// A lack of descriptors passes.
func TestALackOfDescriptorsEndsNothing(t *testing.T) {
	t.Parallel()
	for _, lack := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED, unix.EINTR} {
		var left atomic.Int64
		left.Store(3)
		s := serve(t)
		s.onAll(func(l *Loop) {
			s.Front.accept.accept = func(fd int) (int, error) {
				if left.Add(-1) >= 0 {
					return -1, lack
				}
				return accept4(fd)
			}
		})
		s.dial().send("ehello\n").wants("hello")
		if n := s.starve.Load(); n != 3 && lack != unix.ECONNABORTED && lack != unix.EINTR {
			t.Errorf("%v: reported %d times", lack, n)
		}
	}
}

// A permanent error ends the front, and is reported.
func TestAListenerThatFailsEnds(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.onAll(func(l *Loop) {
		s.Front.accept.accept = func(int) (int, error) { return -1, unix.ENOTSOCK }
	})
	if c, err := net.Dial("tcp", s.addr); err == nil {
		defer c.Close()
	}
	if _, err := s.Gate().Accept(); !errors.Is(err, unix.ENOTSOCK) {
		t.Errorf("%v", err)
	}
}

// If the end begins while a loop accepts connections, that is no failure: the front still waits for the requests under way.
func TestTheEndWhileALoopAccepts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial().send("whello\n")
	r := s.next()
	accepted := make(chan error, 100)
	s.onAll(func(l *Loop) {
		s.Front.accept.accept = func(fd int) (int, error) {
			_ = s.Gate().Close() // just before the loop calls accept
			n, err := accept4(fd)
			accepted <- err
			return n, err
		}
	})
	if late, err := net.Dial("tcp", s.addr); err == nil {
		defer late.Close()
	}
	if err := <-accepted; err == nil {
		t.Error("a listener that is shut down accepts")
	}
	s.onAll(func(*Loop) {}) // the loop has handled the error
	ended := make(chan struct{})
	go func() { s.end(); close(ended) }()
	select {
	case err := <-s.failed:
		t.Errorf("reported %v", err)
	case <-ended:
		t.Error("it did not wait for what is under way")
	default:
	}
	r.c.loop.Post([]*echoRequest{r})
	if got := c.ends(); got != "hello\n" {
		t.Errorf("what was under way got %q", got)
	}
	<-ended
}

// Requests that were read when the end began are answered; idle connections are closed, and incomplete requests are answered why.
func TestTheEnd(t *testing.T) {
	t.Parallel()
	for _, loops := range []int{1, 3} {
		s := serve(t, func(c *Config) { c.Loops = loops })
		var waits, idle, halves []*client
		var held []*echoRequest
		for range 10 {
			waits = append(waits, s.dial().send("whello\n"))
			held = append(held, s.next())
			idle = append(idle, s.dial().send("ehello\n").wants("hello"), s.dial().send("hhello\n").wants("hello"), s.dial())
			halves = append(halves, s.dial().send("ehal"))
		}
		s.opens(50)
		ended := make(chan struct{})
		go func() { s.end(); close(ended) }()
		for _, c := range idle {
			if got := c.ends(); got != "" {
				t.Errorf("an idle one got %q", got)
			}
		}
		for _, c := range halves {
			if got := c.ends(); !strings.HasPrefix(got, "sorry") || !strings.Contains(got, conn.Stopping.Error()) {
				t.Errorf("half a request got %q", got)
			}
		}
		if c, err := net.Dial("tcp", s.addr); err == nil {
			_ = c.Close()
			t.Error("it still listens")
		}
		select {
		case <-ended:
			t.Error("it did not wait for what is under way")
		default:
		}
		for _, r := range held {
			r.c.loop.Post([]*echoRequest{r})
		}
		for _, c := range waits {
			if got := c.ends(); got != "hello\n" {
				t.Errorf("what was under way got %q", got)
			}
		}
		<-ended
	}
}

// Requests that keep coming while the end begins are each answered whole or not at all, and the end comes.
func TestTheEndUnderLoad(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *Config) { c.Pace = time.Millisecond })
	var all sync.WaitGroup
	var answered atomic.Int64
	for i := range 100 {
		c := s.dial()
		all.Go(func() {
			for {
				if _, err := c.Write([]byte([]string{"ehello\n", "hhello\n"}[i%2])); err != nil {
					return
				}
				got, err := c.in.ReadString('\n')
				if err != nil {
					if got != "" {
						t.Errorf("got %q", got)
					}
					return
				}
				answered.Add(1)
			}
		})
	}
	until(t, func() bool { return answered.Load() > 1000 }, func() string { return "no load" })
	s.end()
	all.Wait()
}

// When all places are taken, strangers give way, the oldest first; those that are known do not, and one more is refused.
func TestStrangersYield(t *testing.T) {
	t.Parallel()
	for _, loops := range []int{1, 3} {
		const most = 20
		s := serve(t, func(c *Config) { c.Bound.Max = most; c.Loops = loops })
		var known, strangers []*client
		for range most / 2 {
			known = append(known, s.dial().send("whello\n"))
			r := s.next()
			r.c.Known(shares.Holder{Tenant: "a", Token: strconv.Itoa(len(known))})
			r.c.loop.Post([]*echoRequest{r})
			strangers = append(strangers, s.dial().send("ehal"))
			s.opens(len(known) + len(strangers))
		}
		for i := range strangers {
			newcomer := s.dial()
			if got := strangers[i].ends(); !strings.Contains(got, conn.Displaced.Error()) {
				t.Fatalf("stranger %d got %q", i, got)
			}
			newcomer.send("w\n")
			r := s.next()
			r.c.Known(shares.Holder{Tenant: "a", Token: "late"})
			r.c.loop.Post([]*echoRequest{r})
			newcomer.wants("")
			s.opens(most)
		}
		if got := s.dial().ends(); got != "full\n" || s.reject.Load() != 1 {
			t.Errorf("one more got %q", got)
		}
		for _, c := range known {
			c.wants("hello").send("ehello\n").wants("hello")
		}
	}
}

// A stranger that was cut may have begun a request: it is closed after the answer, and counts as leaving until then.
func TestStrangersThatBeginAsTheyAreCut(t *testing.T) {
	t.Parallel()
	sorry := "sorry " + conn.Displaced.Error() + "\n"
	for begins, left := range map[string]string{
		"wlate\n":        "late\n",                                  // a request that takes its time
		"nnow\nnnow\n":   "now\n",                                   // two that are answered at once
		"elate\nenext\n": "late\n",                                  // two, the first of which goes to the backend
		"hloan\nhloan\n": "loan\nloan\n",                            // two that are handed over
		"hloan\nhlo":     "loan\nsorry hlo" + sorry[len("sorry "):], // the second has not come whole
		"o":              "sorry o" + sorry[len("sorry "):],
		"ehal":           sorry,
		"g9000000\n":     "",
		"m9000000\n":     "", // its answer is more than the connection takes
	} {
		s := serve(t)
		c := s.dial()
		s.opens(1)
		s.onLoop(func() {
			s.Each(func(stranger conn.Candidate) { stranger.Cut(conn.Displaced) })
			c.send(begins) // it has arrived when the loop handles the cut
		})
		if begins[0] == 'w' {
			r := s.next()
			if open, leaving := s.watch.Count(); open != 1 || leaving != 1 {
				t.Errorf("%d connections are open, %d of them leave", open, leaving)
			}
			s.loops[0].Post([]*echoRequest{r})
		}
		if left == "" {
			s.opens(0) // though its client does not read
		} else if got := c.ends(); got != left {
			t.Errorf("%q got %q, want %q", begins, got, left)
		}
		s.opens(0)
		if _, leaving := s.watch.Count(); leaving != 0 {
			t.Errorf("%q: %d connections leave", begins, leaving)
		}
	}
}

// A connection that is cut during a loan, or at its end, is closed.
func TestACutWhileAConnectionIsReturned(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for range 300 { // to meet every moment of a loan
		c := s.dial().send("hone\n")
		s.opens(1)
		until(t, func() (cut bool) {
			s.table.each(func(c *Conn) {
				if h := c.loan.Load(); h != nil {
					cut = h.Cut(conn.OverShare)
				} else {
					cut = c.has(flagServed) && c.Cut(conn.OverShare)
				}
			})
			return cut
		}, func() string { return "it is not cut" })
		if got := c.ends(); got != "one\n" {
			t.Fatalf("got %q", got)
		}
		s.opens(0)
		s.onLoop(func() {})
		if _, leaving := s.watch.Count(); leaving != 0 {
			t.Fatalf("%d connections leave", leaving)
		}
	}
	h := &loan{c: &Conn{loop: s.loops[0], slot: new(slot), fd: -1}, idling: true}
	h.changed.L = &h.mu
	h.c.loan.Store(h)
	h.c.set(flagCut) // the loop saw the loan
	s.leaving.Add(1)
	if !h.awaitBytes() {
		t.Fatal("a connection without bytes did not go back")
	}
	s.onLoop(func() {})
	if !h.c.has(flagClosed) {
		t.Error("a connection that was cut before it went back is open")
	}
}

// A stranger that another loop closes just as it is cut does not count as leaving for ever.
func TestACutOfAClosedConnectionLeavesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial()
	s.opens(1)
	s.Each(func(stranger conn.Candidate) {
		_ = c.Close()
		s.opens(0)
		stranger.Cut(conn.Displaced)
	})
	s.onLoop(func() {})
	if _, leaving := s.watch.Count(); leaving != 0 {
		t.Errorf("%d connections leave", leaving)
	}
}
