package token

import (
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	issuer   = "lubdub"
	audience = "lubdub"

	// MaxBytes is more than any of our tokens has, with every id at its longest; a longer one is invalid.
	MaxBytes = 3072
	// MaxForeignBytes is more than a token of another issuer may have. It fits into the headers of a request.
	MaxForeignBytes = 6144
	// MaxLife is the longest life of a task's or a worker's token.
	MaxLife = 2 * time.Hour
	// MaxControlLife is the longest life of a control token.
	MaxControlLife = 366 * 24 * time.Hour
)

// Kind is the kind of a token.
type Kind string

// The kinds of tokens.
const (
	KindTask    Kind = "task"    // authorizes the callbacks of one attempt
	KindWorker  Kind = "worker"  // authorizes the calls of one registered worker
	KindControl Kind = "control" // authorizes what its role allows in its scope
)

// Claims is the content of a token. Which fields are set depends on its kind.
type Claims struct {
	jwt.RegisteredClaims
	Kind      Kind   `json:"knd"`
	Tenant    string `json:"ten"`
	Workspace string `json:"wsp"`

	// Task tokens.
	Run        string `json:"run,omitempty"`
	Task       string `json:"tsk,omitempty"`
	Attempt    int    `json:"att,omitempty"`
	Fence      string `json:"fen,omitempty"`
	TimeoutMs  int64  `json:"hbt,omitempty"` // heartbeat timeout; 0: depends on its worker's beat
	IntervalMs int64  `json:"hbi,omitempty"`
	IssuedMs   int64  `json:"dsp,omitempty"` // when the attempt was dispatched
	DeadlineMs int64  `json:"ddl,omitempty"` // of the task
	LifeMs     int64  `json:"ttl,omitempty"` // kept by a renewal
	Renew      bool   `json:"rnw,omitempty"`

	// For worker tokens; also for task tokens if a worker was chosen.
	Worker  string   `json:"wkr,omitempty"`
	Machine string   `json:"mch,omitempty"`
	Record  []string `json:"reg,omitempty"` // of the registration, in case the store loses it

	// For control tokens; the queue also for worker tokens.
	Role  Role   `json:"rol,omitempty"`
	Queue string `json:"que,omitempty"`
}

// Mint returns a token of the claims that is valid for life from the given time on, and when it expires. The same claims, time, life and
// key always give the same token. Both times are whole seconds, as every JWT library expects; they are rounded up together, so that
// the token expires neither too early nor, unless its life is MaxLife, up to a second late.
func (k *Keyring) Mint(c *Claims, from time.Time, life time.Duration) (token string, expires time.Time, err error) {
	iat, exp := lifetime(from, life)
	token, err = k.sign(c, iat, exp)
	return token, exp, err
}

func lifetime(from time.Time, life time.Duration) (iat, exp time.Time) {
	exp = ceilSecond(from.Add(life))
	if latest := from.Add(MaxLife); life <= MaxLife && exp.After(latest) {
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

func (k *Keyring) sign(c *Claims, iat, exp time.Time) (string, error) {
	signed := *c
	signed.Issuer = issuer
	signed.Audience = jwt.ClaimStrings{audience}
	signed.IssuedAt = jwt.NewNumericDate(iat)
	signed.ExpiresAt = jwt.NewNumericDate(exp)
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, &signed)
	t.Header["kid"] = k.first.ID
	return t.SignedString(k.secret[k.first.ID])
}

var errToken = errors.New("the token does not hold")

// Verify returns the claims of a token that is valid at the given time. The reason of an error is for tests: clients never see it.
func (k *Keyring) Verify(token string, now time.Time) (*Claims, error) {
	if len(token) == 0 || len(token) > MaxBytes {
		return nil, errToken
	}
	k.verified.Add(1)
	var c Claims
	_, err := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithIssuer(issuer),
		jwt.WithAudience(audience),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	).ParseWithClaims(token, &c, k.keyOf)
	if err != nil {
		return nil, err
	}
	if err := c.endInTime(now); err != nil {
		return nil, err
	}
	return &c, nil
}

// endInTime limits a token to the longest life of its kind, for which revocations are kept.
func (c *Claims) endInTime(now time.Time) error {
	if c.IssuedAt == nil {
		return errToken
	}
	longest := MaxLife
	if c.Kind == KindControl {
		longest = MaxControlLife
	}
	if latest := c.IssuedAt.Add(longest); c.ExpiresAt.After(latest) {
		c.ExpiresAt = jwt.NewNumericDate(latest)
	}
	if !now.Before(c.ExpiresAt.Time) {
		return errToken
	}
	return nil
}

// Verifications returns how many tokens were verified, successfully or not: each costs ten times as much as a heartbeat, so callers
// use a Cache.
func (k *Keyring) Verifications() uint64 { return k.verified.Load() }

// keyOf returns the key of a token. An unknown kid must be an error: an empty key would verify a token that was signed with an empty
// key.
func (k *Keyring) keyOf(t *jwt.Token) (any, error) {
	if _, critical := t.Header["crit"]; critical {
		return nil, errToken // critical extensions, which are not supported
	}
	kid, _ := t.Header["kid"].(string)
	secret, known := k.secret[kid]
	if !known {
		return nil, errToken
	}
	return secret, nil
}
