package token

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMintingIsDeterministic(t *testing.T) {
	k := testKeys(t)
	from := testTime.Add(400 * time.Millisecond)
	one, exp, err := k.Mint(testClaims(), from, time.Hour)
	two, _, _ := k.Mint(testClaims(), from, time.Hour)
	if err != nil || one != two {
		t.Fatalf("two tokens for the same claims: %v", err)
	}
	if want := testTime.Add(time.Hour + time.Second); !exp.Equal(want) {
		t.Errorf("expires %v, want %v: never early, in whole seconds", exp, want)
	}
	c, err := k.Verify(one, testTime)
	if err != nil {
		t.Fatal(err)
	}
	if c.ExpiresAt.Sub(c.IssuedAt.Time) != time.Hour {
		t.Errorf("life %v", c.ExpiresAt.Sub(c.IssuedAt.Time))
	}
	want := testClaims()
	want.RegisteredClaims = c.RegisteredClaims
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
}

func TestATokenHoldsUntilItsEnd(t *testing.T) {
	k := testKeys(t)
	text, exp, err := k.Mint(testClaims(), testTime, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Verify(text, exp.Add(-time.Millisecond)); err != nil {
		t.Errorf("in its last millisecond: %v", err)
	}
	if _, err := k.Verify(text, exp); err == nil {
		t.Error("it holds when it has expired")
	}
	for _, bad := range []string{"", ".", text[:len(text)-1], text + strings.Repeat("A", MaxBytes)} {
		if _, err := k.Verify(bad, testTime); err == nil {
			t.Errorf("%.20q holds", bad)
		}
	}
}

func TestTheLongestTokenLifeIsNeverExceeded(t *testing.T) {
	for _, fraction := range []time.Duration{0, 1, time.Millisecond, 999 * time.Millisecond} {
		from := testTime.Add(fraction)
		for _, life := range []time.Duration{MaxLife, MaxLife - 300*time.Millisecond, time.Hour, time.Second} {
			iat, exp := lifetime(from, life)
			if exp.Sub(from) > MaxLife || exp.Sub(iat) > MaxLife || exp.Nanosecond() != 0 {
				t.Errorf("from +%v for %v: ends %v after", fraction, life, exp.Sub(from))
			}
			if life < MaxLife-time.Second && exp.Before(from.Add(life)) {
				t.Errorf("from +%v for %v: ends early", fraction, life)
			}
		}
	}
}

func TestMintControlRefusesNonsense(t *testing.T) {
	k := testKeys(t)
	good := Control{Role: RoleEnroll, Tenant: "acme", Workspace: Wildcard, Queue: "default", TTL: time.Hour}
	if _, exp, err := k.MintControl(good, testTime); err != nil || !exp.Equal(testTime.Add(time.Hour)) {
		t.Fatal(err, exp)
	}
	for name, change := range map[string]func(*Control){
		"role": func(c *Control) { c.Role = "root" }, "tenant": func(c *Control) { c.Tenant = "" },
		"workspace": func(c *Control) { c.Workspace = "a/b" }, "queue": func(c *Control) { c.Role = RoleAdmin },
		"life": func(c *Control) { c.TTL = 0 },
	} {
		c := good
		change(&c)
		if _, _, err := k.MintControl(c, testTime); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
