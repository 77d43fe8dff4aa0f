package evloop

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A request is reassembled however it is split, whether the loop or a borrower answers it, and whatever follows it.
func TestRequestsCutAtEachByte(t *testing.T) {
	t.Parallel()
	for _, e := range []struct {
		text string
		want []string
	}{
		{"ehello\nethere\nnow\n", []string{"hello", "there", "ow"}},
		{"b10:0123456789b3:abceend\n", []string{"0123456789", "abc", "end"}},
		{"eone\nb5:12345htwo\n", []string{"one", "12345", "two"}},
	} {
		s := serve(t)
		for at := 1; at < len(e.text); at++ {
			c := s.dial().send(e.text[:at])
			s.settle()
			c.send(e.text[at:]).wants(e.want...)
			_ = c.Close()
		}
	}
}

// settle waits until the loop has looked at all that was sent before.
func (s *server) settle() {
	s.t.Helper()
	s.onAll(func(*Loop) {}) // a turn reads before it takes its mail
}

func TestPipelinedRequestsAreAnsweredInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, loops := range []int{1, 3} {
		s := serve(t, func(c *Config) { c.Loops = loops })
		var all sync.WaitGroup
		for i := range 20 {
			c := s.dial()
			all.Go(func() {
				var sent strings.Builder
				var want []string
				for k := range 500 {
					text := fmt.Sprint(i, "-", k)
					sent.WriteString([]string{"e", "n", "h", "e", "n"}[k%5] + text + "\n")
					want = append(want, text)
				}
				go func() { _, _ = c.Write([]byte(sent.String())) }()
				for _, w := range want {
					if got, err := c.in.ReadString('\n'); err != nil || got != w+"\n" {
						t.Errorf("got %q %v, want %q", got, err, w)
						return
					}
				}
			})
		}
		all.Wait()
	}
}

// Who has sent all it has to send still gets its answers.
func TestHalfClosedConnectionsAreAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, text := range []string{"ehello\n", "nhello\n", "hhello\n", "whello\n", "ehello\nehello\n", "b6:hello\n"} {
		c := s.dial().send(text)
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if text[0] == 'w' {
			r := s.next()
			s.settle()
			s.loops[0].Post([]*echoRequest{r})
		}
		if got := c.ends(); strings.TrimSpace(strings.ReplaceAll(got, "hello\n", "")) != "" || !strings.HasPrefix(got, "hello\n") {
			t.Errorf("%q: got %q", text, got)
		}
	}
	c := s.dial().send("eh")
	_ = c.CloseWrite()
	if got := c.ends(); got != "" { // the borrower answers an incomplete request
		t.Errorf("half a request: %q", got)
	}
	s.opens(0)
}

// Everything that any number of goroutines post at any time arrives.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	for _, pace := range []time.Duration{0, time.Millisecond} {
		s := serve(t, func(c *Config) { c.Pace = pace })
		s.onAll(func(l *Loop) { l.scan.every = int64(time.Hour); l.scan.next = l.now + l.scan.every }) // no scan wakes it instead
		const goroutines, each = 16, 1000
		var ran atomic.Int64
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				for range each {
					did := make(chan struct{})
					s.loops[0].Post(func(*Loop) { ran.Add(1); close(did) })
					select { // the next one meets a loop that is about to sleep
					case <-did:
					case <-time.After(patience):
						t.Error("a wake-up was lost")
						return
					}
				}
			})
		}
		all.Wait()
		if n := ran.Load(); n != goroutines*each {
			t.Errorf("%d were sent", n)
		}
	}
}

// While a request is under way nothing behind it is looked at.
func TestOneRequestIsUnderWayAtATime(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial().send("wfirst\nwsecond\n")
	first := s.next()
	c.send("wthird\n")
	s.settle()
	select {
	case r := <-s.held:
		t.Fatalf("%s has begun", r.text)
	default:
	}
	s.loops[0].Post([]*echoRequest{first})
	second := s.next()
	c.wants("first")
	s.loops[0].Post([]*echoRequest{second})
	third := s.next()
	c.wants("second")
	s.loops[0].Post([]*echoRequest{third})
	c.wants("third")
}

// What comes after the borrower has looked in vain, and before the connection is the loop's again, is read.
func TestBytesThatArriveWhileAConnectionIsReturned(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial()
	for range 1000 { // the moment is short
		c.send("hone\n").wants("one").send("etwo\n").wants("two")
	}
	h := &loan{c: &Conn{loop: s.loops[0], slot: new(slot)}, idling: true}
	h.changed.L = &h.mu
	h.c.loan.Store(h)
	h.notify(unix.EPOLLIN)
	if h.awaitBytes() {
		t.Error("a connection with bytes went back")
	}
	if err := h.mayRead(); err != nil {
		t.Fatal(err)
	}
	if !h.awaitBytes() || h.notify(unix.EPOLLIN) {
		t.Error("a connection without bytes did not go back")
	}
}

// A registered function is called once for each sign of the client's end, including those before the registration.
func TestAClientsEndIsReportedOnce(t *testing.T) {
	h := &loan{}
	h.changed.L = &h.mu
	calls := 0
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() { h.notify(unix.EPOLLIN | unix.EPOLLRDHUP) }, 0},
		{func() { h.HungUp(func() { calls++ }) }, 1},
		{func() { h.notify(unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP) }, 1},
		{func() { h.notify(unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR) }, 2},
		{func() { h.notify(unix.EPOLLOUT | unix.EPOLLHUP | unix.EPOLLERR) }, 2},
	} {
		if step.do(); calls != step.want {
			t.Fatalf("after step %d: %d callbacks, want %d", i+1, calls, step.want)
		}
	}
}

// A panic ends only its connection.
func TestAPanicEndsItsConnectionOnly(t *testing.T) {
	t.Parallel()
	s := serve(t)
	other := s.dial().send("ebefore\n").wants("before")
	for range 3 {
		if got := s.dial().send("pon purpose\n").ends(); got != "" {
			t.Errorf("%q", got)
		}
	}
	other.send("eafter\n").wants("after")
	if n := s.panics.Load(); n != 3 {
		t.Errorf("%d panics were reported", n)
	}
	s.opens(1)
}

// A panic outside a connection ends none: at the end of a turn, or when results arrive. Answers sent before it arrive.
func TestAPanicOfATurnEndsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	other := s.dial().send("ebefore\n").wants("before")
	wantPanics := func(n int64) {
		t.Helper()
		until(t, func() bool { return s.panics.Load() == n }, func() string {
			return fmt.Sprintf("%d panics were reported, want %d", s.panics.Load(), n)
		})
	}
	for i, text := range []string{"ton purpose\n", "lon purpose\n"} {
		c := s.dial().send(text)
		wantPanics(int64(i + 1))
		r := s.next()
		r.kind = 'w'
		s.loops[0].Post([]*echoRequest{r})
		c.wants("on purpose")
	}
	first, last := s.dial().send("wfirst\n"), s.dial().send("wlast\n")
	held := []*echoRequest{s.next(), s.next()}
	if held[0].text == "last" {
		held[0], held[1] = held[1], held[0]
	}
	s.loops[0].Post([]*echoRequest{held[0], {kind: 'l'}})
	first.wants("first")
	s.next()
	s.loops[0].Post(held[1:])
	last.wants("last")
	other.send("eafter\n").wants("after")
	wantPanics(3)
}

// Connections that send all the time starve neither each other nor those that goroutines serve.
func TestNoConnectionStarves(t *testing.T) {
	t.Parallel()
	const each, turns = 1000, 3
	s := serve(t, func(c *Config) { c.Pace = time.Millisecond })
	var all sync.WaitGroup
	flood := func(kind string) {
		c := s.dial()
		all.Go(func() {
			batch := strings.Repeat(kind+"x\n", 5)
			for range turns {
				if _, err := c.Write([]byte(batch)); err != nil {
					t.Error(err)
					return
				}
				for range 5 {
					if got, err := c.in.ReadString('\n'); err != nil || got != "x\n" {
						t.Errorf("%s: %q %v", kind, got, err)
						return
					}
				}
			}
			_ = c.Close()
		})
	}
	for range each {
		flood("e")
		flood("h")
	}
	stream := s.dial() // and one that never pauses
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := stream.Write([]byte(strings.Repeat("nx\n", 1000))); err != nil {
					return
				}
			}
		}
	}()
	go func() { _, _ = stream.in.WriteTo(discard{}) }()
	all.Wait()
	close(stop)
	_ = stream.Close()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// A connection at rest holds little: there may be a hundred thousand.
func TestAConnectionIsSmall(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Conn{}) + unsafe.Sizeof(slot{}); size > 128 {
		t.Errorf("a connection takes %d bytes", size)
	}
	s := serve(t)
	c := s.dial().send("eone\nb100000:").wants("one").send(strings.Repeat("x", 100_000)+"htwo\n").wants(strings.Repeat("x", 100_000), "two")
	until(t, func() bool {
		rest := false
		s.onAll(func(*Loop) {
			s.table.each(func(c *Conn) { rest = c.loan.Load() == nil && c.in == nil && c.out == nil })
		})
		return rest
	}, func() string { return "it holds memory between its requests" })
	_ = c.Close()
}

// A request that arrives in many reads is parsed whole, up to the size limit, and a larger one is handed over.
func TestLargeRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *Config) { c.MaxRequest = 1 << 18 })
	c := s.dial()
	for _, n := range []int{1, 1000, readSize - 7, readSize, readSize + 1, 100_000, 1<<18 - 8} {
		body := strings.Repeat("0123456789", n/10+1)[:n]
		for range 3 {
			c.send(fmt.Sprintf("b%d:%seafter\n", n, body)).wants(body, "after")
		}
	}
	if got := s.dial().send("e" + strings.Repeat("x", 1<<18) + "\n").wants(strings.Repeat("x", 1<<18)); s.handedOff.Load() != 1 {
		t.Errorf("%v was not handed over", got)
	}
}
