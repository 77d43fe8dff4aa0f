package shares

import (
	"testing"

	"pgregory.net/rapid"
)

// fill takes single units until h is refused.
func fill(p *Pool, h Holder) (got int64, refused Level) {
	for {
		if refused = p.Take(h, 1); refused != Granted {
			return got, refused
		}
		got++
	}
}

func TestWhatOneMayHoldAlone(t *testing.T) {
	for _, c := range []struct {
		holder  Holder
		want    int64
		refused Level
	}{
		{Holder{}, 11, Strangers},
		{Holder{Tenant: "a", Token: "1"}, 50, Token},
		{Holder{Tenant: "a"}, 80, Tenant},
	} {
		if got, refused := fill(NewPool(100), c.holder); got != c.want || refused != c.refused {
			t.Errorf("%+v: got %d, refused by %v", c.holder, got, refused)
		}
	}
}

func TestATenantOfManyTokensHoldsNoMore(t *testing.T) {
	p := NewPool(100)
	for _, token := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		fill(p, Holder{"a", token})
	}
	if used := p.Used(); used > 80 {
		t.Errorf("one tenant holds %d of 100", used)
	}
	if got, _ := fill(p, Holder{"b", "1"}); got < 5 {
		t.Errorf("another tenant gets %d", got)
	}
}

func TestASmallPoolIsUsable(t *testing.T) {
	p := NewPool(1)
	if l := p.Take(Holder{"a", "1"}, 1); l != Granted {
		t.Errorf("refused by %v", l)
	}
	if l := p.Take(Holder{"b", "1"}, 1); l == Granted {
		t.Error("a full pool grants")
	}
}

// Whatever is taken, given back and moved: the pool is never over its limit, what is given back leaves no trace, and a principal
// that holds nothing is refused only when nothing is free.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPool(rapid.Int64Range(1, 200).Draw(t, "limit"))
		type grant struct {
			holder Holder
			n      int64
		}
		var grants []grant
		anyone := rapid.SampledFrom([]Holder{{}, {"a", ""}, {"a", "1"}, {"a", "2"}, {"b", "1"}, {"c", "1"}})
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				g := grant{anyone.Draw(t, "holder"), rapid.Int64Range(1, 20).Draw(t, "n")}
				if p.Take(g.holder, g.n) == Granted {
					grants = append(grants, g)
				}
			case 2:
				if len(grants) > 0 {
					p.Release(grants[0].holder, grants[0].n)
					grants = grants[1:]
				}
			case 3:
				if len(grants) > 0 {
					to := anyone.Draw(t, "to")
					p.Move(grants[0].holder, to, grants[0].n)
					grants[0].holder = to
				}
			}
			if p.Used() > p.Limit() {
				t.Fatalf("%d of %d are in use", p.Used(), p.Limit())
			}
			if p.Used() < p.Limit() {
				newcomer := Holder{"new", "1"}
				if l := p.Take(newcomer, 1); l != Granted {
					t.Fatalf("with %d of %d in use, a newcomer is refused by %v", p.Used(), p.Limit(), l)
				}
				p.Release(newcomer, 1)
			}
		}
		for _, g := range grants {
			p.Release(g.holder, g.n)
		}
		if p.Used() != 0 || len(p.holders) != 0 {
			t.Fatalf("%d are in use, holders %v", p.Used(), p.holders)
		}
	})
}
