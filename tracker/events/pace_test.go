package events

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A tenant's readers, whatever they request and in any order, read no more than its rate and one burst; streams wait, pages that would
// wait for long are refused, and another tenant is not delayed.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPace()
		began := time.Unix(0, 0)
		now := began
		latest := began // when the last granted entries may be read
		granted := 0
		who := reader{tenant: "a", streams: rapid.Bool().Draw(t, "streams")}
		atMost := pageWait
		if who.streams {
			atMost = time.Hour
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "ms")) * time.Millisecond)
			n := rapid.IntRange(1, 5_000).Draw(t, "entries")
			wait, ok := p.reserve(who, n, atMost, now)
			if ok != (wait <= atMost) {
				t.Fatalf("a wait of %v: %v", wait, ok)
			}
			if ok {
				read := rapid.IntRange(0, n).Draw(t, "read")
				p.refund(who, n-read)
				granted += read
				if at := now.Add(wait); at.After(latest) {
					latest = at
				}
			}
			if most := int(latest.Sub(began)+readAhead)*readsPerSecond/int(time.Second) + 5_000; granted > most {
				t.Fatalf("%d entries until %v", granted, latest.Sub(began))
			}
			for _, other := range []reader{{tenant: "b", streams: true}, {tenant: "b"}, {tenant: "a", streams: !who.streams}} {
				if wait, ok := p.reserve(other, 0, 0, now); !ok || wait != 0 {
					t.Fatalf("%+v waits for %v", other, wait)
				}
			}
		}
	})
}

func TestPaceForgetsReadersThatHaveRested(t *testing.T) {
	p := newPace()
	now := time.Unix(0, 0)
	for i := range 3 * mostReaders {
		p.reserve(reader{tenant: string(rune(i))}, 20, 0, now)
		now = now.Add(2 * time.Millisecond)
	}
	if n := len(p.paid); n > mostReaders {
		t.Errorf("%d readers are remembered", n)
	}
}
