package token

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// No bytes but those of a token that was signed open anything.
func FuzzToken(f *testing.F) {
	k := testKeys(f)
	good, _, err := k.Mint(testClaims(), testTime, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	for _, token := range []string{
		good, good + "=", good[:len(good)-1], "..", "", "a.b.c", strings.Replace(good, ".", "..", 1), strings.ToUpper(good),
	} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if c, err := k.Verify(token, testTime); err == nil && token != good {
			t.Fatalf("%q opens %+v", token, c)
		}
	})
}

// Keys that are taken are written back as they were read.
func FuzzParseKeys(f *testing.F) {
	for _, text := range []string{
		"k1=" + NewKey("k1").String(), NewKey("a").String() + "," + NewKey("b").String(), "k=", "=", ",,", "k1=AAAA-_",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseKeys(text)
		if err != nil {
			return
		}
		var again []string
		for _, k := range keys {
			again = append(again, k.String())
		}
		if got, err := ParseKeys(strings.Join(again, ",")); err != nil || !reflect.DeepEqual(got, keys) && len(keys) > 0 {
			t.Fatalf("%q: %v, then %v (%v)", text, keys, got, err)
		}
		if ring, err := NewKeyring(keys...); err == nil && len(ring.secret) != len(keys) {
			t.Fatalf("%q: %d keys became %d", text, len(keys), len(ring.secret))
		}
	})
}
