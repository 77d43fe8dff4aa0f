package api

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lubdub-io/lubdub/tracker"
)

const (
	tokenIssuer   = "lubdub"
	tokenAudience = "lubdub"
	// maxTokenBytes is more than any token of ours has, with every id at its longest.
	maxTokenBytes = 3072
	// MinKeyBytes is the least a signing key must have.
	MinKeyBytes = 32
)

// Key signs and verifies tokens. Its ID stands in each token's header as kid.
type Key struct {
	ID     string
	Secret []byte
}

// NewKey makes a random key.
func NewKey(id string) Key {
	secret := make([]byte, MinKeyBytes)
	_, _ = rand.Read(secret) // never fails
	return Key{ID: id, Secret: secret}
}

// String gives the key as ParseKeys reads it. It is a secret.
func (k Key) String() string { return k.ID + "=" + base64.StdEncoding.EncodeToString(k.Secret) }

// ParseKeys reads "<kid>=<base64>[,<kid>=<base64>…]"; white space and line ends may stand for commas. The
// first key signs.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for i, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' }) {
		id, encoded, found := strings.Cut(f, "=")
		if !found {
			return nil, fmt.Errorf("signing key %d has no kid: write it as <kid>=<base64>", i+1)
		}
		secret, err := decodeBase64(encoded)
		if err != nil {
			return nil, fmt.Errorf("signing key %d (%s) is not base64: make one with: openssl rand -base64 32", i+1, id)
		}
		keys = append(keys, Key{ID: id, Secret: secret})
	}
	return keys, nil
}

// decodeBase64 reads the standard and the URL alphabet, with padding and without.
func decodeBase64(s string) ([]byte, error) {
	s = strings.TrimRight(s, "=")
	if strings.ContainsAny(s, "-_") {
		return base64.RawURLEncoding.DecodeString(s)
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// Keyring signs tokens with its first key and verifies them with any. It is immutable and safe for
// concurrent use.
type Keyring struct {
	first  Key
	secret map[string][]byte // by kid
}

// NewKeyring makes a keyring of one key or more, each of MinKeyBytes or more.
func NewKeyring(keys ...Key) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("there is no signing key: give one as <kid>=<base64 of at least 32 bytes>, for example k1=$(openssl rand -base64 32)")
	}
	k := &Keyring{first: keys[0], secret: make(map[string][]byte, len(keys))}
	for i, key := range keys {
		switch {
		case !tracker.ValidID(key.ID):
			return nil, fmt.Errorf("signing key %d: the kid %q is not 1 to 128 letters, digits, dots, underscores and hyphens", i+1, key.ID)
		case len(key.Secret) < MinKeyBytes:
			return nil, fmt.Errorf("signing key %s has %d bytes; it needs at least %d: make one with: openssl rand -base64 32", key.ID, len(key.Secret), MinKeyBytes)
		case k.secret[key.ID] != nil:
			return nil, fmt.Errorf("the kid %s is used for two signing keys", key.ID)
		}
		k.secret[key.ID] = append([]byte(nil), key.Secret...)
	}
	return k, nil
}

// claims of every kind of token; which are set depends on the kind.
type claims struct {
	jwt.RegisteredClaims
	Kind      string `json:"knd"`
	Tenant    string `json:"ten"`
	Workspace string `json:"wsp"`

	// Task tokens.
	Run        string `json:"run,omitempty"`
	Task       string `json:"tsk,omitempty"`
	Attempt    int    `json:"att,omitempty"`
	Fence      string `json:"fen,omitempty"`
	TimeoutMs  int64  `json:"hbt,omitempty"` // heartbeat timeout; 0: lives by its worker's beat
	IntervalMs int64  `json:"hbi,omitempty"`
	IssuedMs   int64  `json:"dsp,omitempty"` // when the attempt was dispatched
	DeadlineMs int64  `json:"ddl,omitempty"` // of the task
	LifeMs     int64  `json:"ttl,omitempty"` // a renewal keeps it
	Renew      bool   `json:"rnw,omitempty"`

	// Worker tokens.
	Worker  string   `json:"wkr,omitempty"`
	Machine string   `json:"mch,omitempty"`
	Record  []string `json:"reg,omitempty"` // of the registration, should the store lose it

	// Control tokens; worker tokens have the queue too.
	Role  string `json:"rol,omitempty"`
	Queue string `json:"que,omitempty"`
}

const (
	kindTask    = "task"
	kindControl = "control"
)

// lifetime gives iat and exp of a token that begins at from. Both are whole seconds, as every JWT library
// expects; they are rounded up together, so that the token ends neither too early nor, but when its life is
// the longest allowed, up to a second late.
func lifetime(from time.Time, life time.Duration) (iat, exp time.Time) {
	exp = ceilSecond(from.Add(life))
	if latest := from.Add(tracker.MaxTokenTTL); life <= tracker.MaxTokenTTL && exp.After(latest) {
		exp = latest.Truncate(time.Second)
	}
	return exp.Add(-life.Truncate(time.Second)), exp
}

func ceilSecond(t time.Time) time.Time {
	if f := t.Truncate(time.Second); !f.Equal(t) {
		return f.Add(time.Second)
	}
	return t
}

// sign makes a token. The same claims and key give the same token, always.
func (k *Keyring) sign(c *claims, iat, exp time.Time) (string, error) {
	c.Issuer = tokenIssuer
	c.Audience = jwt.ClaimStrings{tokenAudience}
	c.IssuedAt = jwt.NewNumericDate(iat)
	c.ExpiresAt = jwt.NewNumericDate(exp)
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
	t.Header["kid"] = k.first.ID
	return t.SignedString(k.secret[k.first.ID])
}

var errToken = errors.New("the token does not hold")

// verify judges a token at the given time. Every refusal is the same to the client; the error is for tests.
func (k *Keyring) verify(token string, now time.Time) (*claims, error) {
	if len(token) == 0 || len(token) > maxTokenBytes {
		return nil, errToken
	}
	var c claims
	_, err := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithIssuer(tokenIssuer),
		jwt.WithAudience(tokenAudience),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	).ParseWithClaims(token, &c, k.keyOf)
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// keyOf finds the key of a token. An unknown kid must be an error: an empty key would verify a token that was
// signed with an empty key.
func (k *Keyring) keyOf(t *jwt.Token) (any, error) {
	if _, critical := t.Header["crit"]; critical {
		return nil, errToken // extensions that we would have to understand, and do not
	}
	kid, _ := t.Header["kid"].(string)
	secret, known := k.secret[kid]
	if !known {
		return nil, errToken
	}
	return secret, nil
}
