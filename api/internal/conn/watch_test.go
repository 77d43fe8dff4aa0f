package conn

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/bubble"
)

// Deadlines of a watched connection take effect as those of any other, and can be set again.
func TestDeadlines(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		w := NewWatch(time.Minute, 2*time.Second, time.Minute, nil)
		c := w.add(near)
		start := time.Now()
		wait := func(after time.Duration, op func() error) {
			t.Helper()
			if err := op(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%v", err)
			}
			if d := time.Since(start); d < after || d > after+w.interval {
				t.Errorf("passed after %v, want %v", d, after)
			}
		}
		read := func() error { _, err := c.Read(make([]byte, 1)); return err }
		write := func() error { _, err := c.Write([]byte("x")); return err }

		_ = c.SetReadDeadline(start.Add(2 * time.Second))
		wait(2*time.Second, read)
		_ = c.SetDeadline(start.Add(5 * time.Second)) // a deadline that has passed can be moved on
		wait(5*time.Second, write)
		_ = c.SetWriteDeadline(start.Add(9 * time.Second))
		wait(9*time.Second, write)

		_ = c.SetDeadline(time.Time{})
		time.AfterFunc(time.Hour, func() { _, _ = far.Write([]byte("x")) })
		if err := read(); err != nil {
			t.Errorf("without a deadline: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := read(); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after Close: %v", err)
		}
		if len(w.conns) != 0 {
			t.Error("the watch holds a closed connection")
		}
		// The watch ends with its last connection; synctest fails when it does not.
	})
}

// Very many connections that are due together are cut a few at a time, and all of them.
func TestConnectionsThatAreDueTogether(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := NewWatch(2*time.Second, time.Minute, time.Minute, nil)
		const n = 10*CutsAtOnce + 1
		start := time.Now()
		cut := make(chan time.Time, n)
		for range n {
			near, far := net.Pipe()
			defer far.Close()
			c := w.add(near)
			_ = c.SetReadDeadline(start.Add(2 * time.Second))
			go func() {
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
				cut <- time.Now()
				_ = c.Close()
			}()
		}
		together := map[time.Time]int{}
		for range n {
			together[<-cut]++
		}
		for at, k := range together {
			if k > CutsAtOnce || at.Sub(start) > 2*time.Second+w.interval+10*CutPause {
				t.Errorf("%d at once, %v after the start", k, at.Sub(start))
			}
		}
	})
}

// fakeOthers are connections of others: strangers that wait.
type fakeOthers struct {
	open, leaving int
	idle          []*fakeStranger
}

type fakeStranger struct {
	of    *fakeOthers
	since int64
	cut   bool
}

func (k *fakeOthers) Open() (open, leaving int) { return k.open, k.leaving }
func (k *fakeOthers) Waiting() []net.Addr       { return nil }
func (k *fakeOthers) StopReading()              {}
func (k *fakeOthers) Each(yield func(Candidate)) {
	for _, s := range k.idle {
		yield(s)
	}
}

func (s *fakeStranger) State() State {
	if s.cut {
		return Busy
	}
	return Waiting
}
func (s *fakeStranger) Member() *Member { return nil }
func (s *fakeStranger) Since() int64    { return s.since }
func (s *fakeStranger) Came() int64     { return s.since }
func (s *fakeStranger) Cut(*Cut) bool {
	s.cut = true
	s.of.leaving++
	return true
}

// The next connection brings the number of connections down to the limit.
func TestTheNextConnectionRestoresTheLimit(t *testing.T) {
	w := NewWatch(time.Minute, time.Minute, time.Minute, nil)
	l := w.Listen(noListener{}, Bound{Max: 10})
	k := &fakeOthers{open: 13}
	for i := range k.open {
		k.idle = append(k.idle, &fakeStranger{of: k, since: int64(i)})
	}
	w.Join(k)
	if !fits(l.Admit()) {
		t.Error("there is no room though strangers give way")
	}
	if k.leaving != 4 || k.idle[3].State() != Busy || k.idle[4].State() != Waiting {
		t.Errorf("%d give way, want the 4 oldest", k.leaving)
	}
	w.Part(k)
}

func fits(ok bool, _ time.Duration) bool { return ok }

type noListener struct{ net.Listener }
