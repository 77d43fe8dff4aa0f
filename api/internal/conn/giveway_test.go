package conn

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/bubble"
	"github.com/lubdub-io/lubdub/internal/shares"
)

// full returns a watch whose places are all taken by idle connections of the holders, and those connections.
func full(t *testing.T, holders ...shares.Holder) (*Watch, []*Conn) {
	w := NewWatch(time.Hour, time.Hour, time.Hour, nil)
	w.Listen(noListener{}, Bound{Max: len(holders), Reserve: 1})
	var conns []*Conn
	for _, h := range holders {
		near, far := net.Pipe()
		c := w.add(near).(*Conn)
		t.Cleanup(func() { _, _ = c.Close(), far.Close() })
		Known(c, h)
		conns = append(conns, c)
		time.Sleep(time.Minute) // each has waited for less long than the one before
	}
	return w, conns
}

func of(tenant, token string) shares.Holder { return shares.Holder{Tenant: tenant, Token: token} }

// Of two tokens of a tenant the one with more connections gives way, and a tenant with more to one with fewer; the longest idle first.
func TestATokenYieldsToAnother(t *testing.T) {
	for name, c := range map[string]struct {
		there     []shares.Holder
		comes     shares.Holder
		displaced int // -1: the newcomer is the next to go
	}{
		"another token":              {[]shares.Holder{of("a", "1"), of("a", "1"), of("a", "1")}, of("a", "2"), 0},
		"another tenant":             {[]shares.Holder{of("b", "1"), of("a", "1"), of("a", "2")}, of("c", "1"), 1},
		"the token with the most":    {[]shares.Holder{of("a", "1"), of("a", "2"), of("a", "2")}, of("a", "3"), 1},
		"no token has more":          {[]shares.Holder{of("a", "1"), of("a", "2"), of("a", "3")}, of("a", "4"), -1},
		"the same token":             {[]shares.Holder{of("a", "1"), of("a", "1"), of("a", "1")}, of("a", "1"), -1},
		"the tenant has as many":     {[]shares.Holder{of("a", "1"), of("a", "2"), of("b", "1"), of("b", "2")}, of("b", "3"), -1},
		"its tenant has fewer still": {[]shares.Holder{of("a", "1"), of("a", "2"), of("a", "3"), of("b", "1")}, of("b", "2"), 0},
	} {
		bubble.Run(t, func(t *testing.T) {
			w, conns := full(t, c.there...)
			member := w.Enter(c.comes)
			defer w.Leave(member)
			if (member == surplus) != (c.displaced < 0) {
				t.Errorf("%s: the newcomer is in surplus: %v", name, member == surplus)
			}
			for i, other := range conns {
				if cut := other.why.Load() == OverShare; cut != (i == c.displaced) {
					t.Errorf("%s: connection %d is cut: %v", name, i, cut)
				}
			}
		})
	}
}

// A stream that must give way is woken, and writes no more.
func TestAStreamYields(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, conns := full(t, of("a", "1"), of("a", "1"))
		woken := 0
		for _, c := range conns {
			Streams(c, func() { woken++ })
			c.reading.Store(false)
		}
		defer w.Leave(w.Enter(of("b", "1")))
		if woken != 1 {
			t.Errorf("%d streams are woken", woken)
		}
		for _, c := range conns {
			if c.why.Load() == nil {
				continue
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, OverShare) {
				t.Errorf("it writes: %v", err)
			}
		}
	})
}

// A stranger keeps its place for strangerTime; a new connection waits until then, unless none can give way to it.
func TestStrangersHaveTimeToShowAToken(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := NewWatch(time.Hour, time.Hour, time.Hour, nil)
		l := w.Listen(noListener{}, Bound{Max: 2})
		add := func() *Conn {
			near, _ := net.Pipe()
			c := w.add(near).(*Conn)
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		stranger := add()
		if !fits(l.Admit()) {
			t.Error("there is no room though a place is free")
		}
		add().reading.Store(false)
		came := time.Now()
		for !fits(l.Admit()) {
			if _, retry := l.Admit(); retry == 0 {
				t.Fatalf("%v after a stranger came the next connection is refused", time.Since(came))
			}
			time.Sleep(admitPause)
		}
		if took := time.Since(came); took < strangerTime || took > strangerTime+2*walkPause || stranger.why.Load() != Displaced {
			t.Errorf("the stranger gives way after %v: %v", took, stranger.why.Load())
		}
		add().reading.Store(false)
		if ok, retry := l.Admit(); ok || retry == 0 {
			t.Errorf("requests are under way on all connections: room %v, retry in %v", ok, retry)
		}
		time.Sleep(admitWait)
		if ok, retry := l.Admit(); ok || retry != 0 {
			t.Errorf("no connection has given way for %v: room %v, retry in %v", admitWait, ok, retry)
		}
	})
}
