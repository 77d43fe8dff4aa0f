package token

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lubdub-io/lubdub/tracker/model"
)

func TestRotatedKeysAllVerifyAndTheFirstSigns(t *testing.T) {
	old := Key{ID: "old", Secret: []byte(strings.Repeat("o", 32))}
	young := Key{ID: "young", Secret: []byte(strings.Repeat("y", 40))}
	ring := func(keys ...Key) *Keyring {
		k, err := NewKeyring(keys...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	before, during, after := ring(old), ring(young, old), ring(young)
	oldToken, _, _ := before.Mint(testClaims(), testTime, time.Hour)
	newToken, _, _ := during.Mint(testClaims(), testTime, time.Hour)
	for name, c := range map[string]struct {
		ring  *Keyring
		token string
		holds bool
	}{
		"old token, both keys": {during, oldToken, true}, "new token, both keys": {during, newToken, true},
		"old token, new key": {after, oldToken, false}, "new token, new key": {after, newToken, true},
		"new token, old key": {before, newToken, false},
	} {
		if _, err := c.ring.Verify(c.token, testTime); (err == nil) != c.holds {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysAreRefusedWithAReason(t *testing.T) {
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 32)))
	for text, part := range map[string]string{
		"":                           "no signing key",
		"k1":                         "no kid",
		long:                         "<kid>=<base64",
		"k1=!!!":                     "not base64",
		"k1=" + long[:40]:            "at least 32",
		"k1=":                        "at least 32",
		"=" + long:                   "kid",
		"k1=" + long + ",k1=" + long: "two signing keys",
	} {
		keys, err := ParseKeys(text)
		if err == nil {
			_, err = NewKeyring(keys...)
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %v, want %q", text, err, part)
		}
		if err != nil && strings.Contains(err.Error(), long[:40]) {
			t.Errorf("%q: the error shows the secret: %v", text, err)
		}
	}
	k := NewKey("fresh")
	for _, text := range []string{
		"k1=" + long + "," + k.String(), "k1=" + long + "\n" + k.String() + "\n", "k1=" + strings.TrimRight(long, "=") + " , " + k.String(),
	} {
		keys, err := ParseKeys(text)
		if err != nil || len(keys) != 2 || string(keys[1].Secret) != string(k.Secret) || keys[1].ID != "fresh" {
			t.Errorf("%q: %v %v", text, keys, err)
		}
	}
}

// The rule for ids and the longest lifetime of a token are defined in the domain, which this package does not import: both must agree.
func TestIDsAndLivesAreTheDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.StringOfN(rapid.RuneFrom([]rune("aZ9._-@[`{/:é\x00")), 0, 3, -1)
		id := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9._-]{0,130}`), odd).Draw(t, "id")
		if validID(id) != model.ValidID(id) {
			t.Fatalf("%q is an id: %v; in the domain %v", id, validID(id), model.ValidID(id))
		}
	})
	for c := range 256 {
		for _, id := range []string{string([]byte{byte(c)}), string([]byte{'a', byte(c)})} {
			if validID(id) != model.ValidID(id) {
				t.Errorf("%q is an id: %v; in the domain %v", id, validID(id), model.ValidID(id))
			}
		}
	}
	if MaxLife != model.MaxTokenTTL || MaxControlLife != model.MaxControlTTL {
		t.Errorf("tokens may be valid for %v and %v; in the domain %v and %v", MaxLife, MaxControlLife, model.MaxTokenTTL, model.MaxControlTTL)
	}
}
