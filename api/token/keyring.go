package token

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// MinKeyBytes is the minimum size of a signing key.
const MinKeyBytes = 32

// Key signs and verifies tokens. Its ID is the kid in each token's header.
type Key struct {
	ID     string
	Secret []byte
}

// NewKey returns a random key of MinKeyBytes.
func NewKey(id string) Key {
	secret := make([]byte, MinKeyBytes)
	_, _ = rand.Read(secret) // never fails
	return Key{ID: id, Secret: secret}
}

// String returns the key in the form that ParseKeys reads. It is a secret.
func (k Key) String() string { return k.ID + "=" + base64.StdEncoding.EncodeToString(k.Secret) }

// ParseKeys parses "<kid>=<base64>[,<kid>=<base64>…]"; white space and line ends may replace commas. The first key signs.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for i, f := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\n\r", r) }) {
		id, encoded, found := strings.Cut(f, "=")
		if !found || strings.Trim(encoded, "=") == "" { // a secret alone ends in =, and is not for the log
			return nil, fmt.Errorf("signing key %d has no kid or no secret: write it as <kid>=<base64 of at least %d bytes>, for example "+
				"k1=$(openssl rand -base64 32)", i+1, MinKeyBytes)
		}
		secret, err := decodeBase64(encoded)
		if err != nil {
			return nil, fmt.Errorf("signing key %d (%s) is not base64: make one with: openssl rand -base64 32", i+1, id)
		}
		keys = append(keys, Key{ID: id, Secret: secret})
	}
	return keys, nil
}

// decodeBase64 accepts the standard and the URL alphabet, with padding and without.
func decodeBase64(s string) ([]byte, error) {
	s = strings.TrimRight(s, "=")
	if strings.ContainsAny(s, "-_") {
		return base64.RawURLEncoding.DecodeString(s)
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// Keyring signs tokens with its first key and verifies them with any of its keys, which never change. It is safe for concurrent use.
type Keyring struct {
	first    Key
	secret   map[string][]byte // by kid
	verified atomic.Uint64
}

// NewKeyring returns a keyring of one or more keys, each of at least MinKeyBytes, under different kids.
func NewKeyring(keys ...Key) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("there is no signing key: " +
			"give one as <kid>=<base64 of at least 32 bytes>, for example k1=$(openssl rand -base64 32)")
	}
	k := &Keyring{first: keys[0], secret: make(map[string][]byte, len(keys))}
	for i, key := range keys {
		switch {
		case !validID(key.ID):
			return nil, fmt.Errorf("signing key %d: the kid %q is not 1 to 128 letters, digits, dots, underscores and hyphens", i+1, key.ID)
		case len(key.Secret) < MinKeyBytes:
			return nil, fmt.Errorf("signing key %s has %d bytes; it needs at least %d: make one with: openssl rand -base64 32",
				key.ID, len(key.Secret), MinKeyBytes)
		case k.secret[key.ID] != nil:
			return nil, fmt.Errorf("the kid %s is used for two signing keys", key.ID)
		}
		k.secret[key.ID] = append([]byte(nil), key.Secret...)
	}
	return k, nil
}

// validID reports whether s may be a kid, a tenant, a workspace or a queue. It is the domain's rule for ids; a test checks that the two
// agree.
func validID(s string) bool {
	for i := range len(s) {
		c := s[i]
		if alphanumeric := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'; !alphanumeric && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 128
}
