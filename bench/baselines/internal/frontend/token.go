package frontend

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// Claims are the claims of Lubdub's task tokens that a beat needs.
type Claims struct {
	jwt.RegisteredClaims
	Kind      string `json:"knd"`
	Tenant    string `json:"ten"`
	Workspace string `json:"wsp"`
	Task      string `json:"tsk"`
	Attempt   int    `json:"att"`
	Fence     string `json:"fen"`
	TimeoutMs int64  `json:"hbt"`
	NextMs    int64  `json:"hbi"`
}

// Verify verifies a token and returns its claims.
type Verify func(token []byte) (*Claims, error)

var errToken = errors.New("the token does not hold")

// Verifier returns a Verify that parses each token with the options that the library's documentation recommends. keys are
// "<kid>=<base64>[,<kid>=<base64>…]".
func Verifier(keys string) (Verify, error) {
	secrets := map[string][]byte{}
	for _, pair := range strings.Split(keys, ",") {
		kid, encoded, _ := strings.Cut(pair, "=")
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || kid == "" || len(secret) < 32 {
			return nil, errors.New(`LUBDUB_SIGNING_KEYS does not hold keys as <kid>=<base64 of at least 32 bytes>; make one with: export LUBDUB_SIGNING_KEYS="k1=$(openssl rand -base64 32)"`)
		}
		secrets[kid] = secret
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(),
		jwt.WithIssuer("lubdub"), jwt.WithAudience("lubdub"), jwt.WithStrictDecoding())
	keyOf := func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		secret, known := secrets[kid]
		if !known {
			return nil, fmt.Errorf("%w: no key %q", errToken, kid)
		}
		return secret, nil
	}
	return func(token []byte) (*Claims, error) {
		var c Claims
		if _, err := parser.ParseWithClaims(string(token), &c, keyOf); err != nil {
			return nil, err
		}
		if c.Kind != "task" {
			return nil, errToken
		}
		return &c, nil
	}, nil
}
