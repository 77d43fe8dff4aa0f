package oidc_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/api/token"
)

const (
	issuer   = "https://id.example.com"
	settings = `
issuer: https://id.example.com
clientId: lubdub
grants:
  - {claim: groups, value: platform, role: admin, tenant: "*", workspace: "*"}
  - {role: viewer, tenant: acme, workspace: prod}
`
)

var quiet = slog.New(slog.DiscardHandler)

// site is an OpenID provider in memory.
type site struct {
	t        *testing.T
	mu       sync.Mutex
	keys     map[string]crypto.Signer // by kid
	down     bool
	metadata string // instead of the usual one
	fetches  int
}

func newSite(t *testing.T) *site { return &site{t: t, keys: map[string]crypto.Signer{}} }

// change changes what a running provider finds.
func (s *site) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// fetched returns how many requests there were.
func (s *site) fetched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

// RoundTrip answers the requests for the provider's metadata and keys.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetches++
	if s.down {
		return nil, errors.New("connection refused")
	}
	var body []byte
	switch r.URL.String() {
	case issuer + "/.well-known/openid-configuration":
		body, _ = json.Marshal(map[string]string{"issuer": issuer, "authorization_endpoint": issuer + "/auth",
			"token_endpoint": "https://token.example.com/token", "jwks_uri": issuer + "/keys"})
		if s.metadata != "" {
			body = []byte(s.metadata)
		}
	case issuer + "/keys":
		store := jwkset.NewMemoryStorage()
		for kid, key := range s.keys {
			jwk, err := jwkset.NewJWKFromKey(key.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}})
			if err != nil {
				s.t.Fatal(err)
			}
			_ = store.KeyWrite(r.Context(), jwk)
		}
		body, _ = store.JSONPublic(r.Context())
		body = bytes.Replace(body, []byte(`"keys":[`), []byte(`"keys":[{"kty":"OKP","crv":"secp","kid":"z"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"y"},`), 1)
	default:
		s.t.Errorf("an unexpected request: %s", r.URL)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// newProvider returns a provider of the site.
func newProvider(s *site) *oidc.Provider {
	cfg, err := oidc.Parse([]byte(settings))
	if err != nil {
		s.t.Fatal(err)
	}
	return oidc.NewProvider(cfg, s, quiet)
}

// run runs a provider in the bubble, and returns after its first attempt to fetch the keys.
func run(t *testing.T, p *oidc.Provider) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go p.Run(ctx)
	synctest.Wait()
}

func (s *site) start() *oidc.Provider {
	p := newProvider(s)
	run(s.t, p)
	return p
}

// claims returns the claims of a person's token that is valid for an hour, with changes; a nil value removes a claim.
func claims(changes map[string]any) jwt.MapClaims {
	all := jwt.MapClaims{"iss": issuer, "aud": "lubdub", "sub": "17", "email": "ann@example.com",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range changes {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

// sign returns a token, without a kid if that is empty.
func (s *site) sign(method jwt.SigningMethod, kid string, key any, c jwt.MapClaims) string {
	s.t.Helper()
	made := jwt.NewWithClaims(method, c)
	if kid != "" {
		made.Header["kid"] = kid
	}
	text, err := made.SignedString(key)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestWhichTokensAreValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		r, other := rsaKey(t), rsaKey(t)
		e, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		_, d, _ := ed25519.GenerateKey(rand.Reader)
		s.keys["r"], s.keys["e"], s.keys["d"] = r, e, d
		p := s.start()
		public := []byte(r.N.String())
		hour := time.Now().Add(time.Hour).Unix()
		for name, c := range map[string]struct {
			text  string
			valid bool
		}{
			"RS256":                   {s.sign(jwt.SigningMethodRS256, "r", r, claims(nil)), true},
			"ES256":                   {s.sign(jwt.SigningMethodES256, "e", e, claims(nil)), true},
			"EdDSA":                   {s.sign(jwt.SigningMethodEdDSA, "d", d, claims(nil)), true},
			"several audiences":       {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"aud": []string{"x", "lubdub"}})), true},
			"a clock a little ahead":  {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"iat": time.Now().Unix() + 5})), true},
			"another's key":           {s.sign(jwt.SigningMethodRS256, "r", other, claims(nil)), false},
			"another kind of key":     {s.sign(jwt.SigningMethodRS256, "e", r, claims(nil)), false},
			"RS512":                   {s.sign(jwt.SigningMethodRS512, "r", r, claims(nil)), false},
			"no signature":            {s.sign(jwt.SigningMethodNone, "r", jwt.UnsafeAllowNoneSignatureType, claims(nil)), false},
			"the public key's secret": {s.sign(jwt.SigningMethodHS256, "r", public, claims(nil)), false},
			"no kid":                  {s.sign(jwt.SigningMethodRS256, "", r, claims(nil)), false},
			"an unknown kid":          {s.sign(jwt.SigningMethodRS256, "x", r, claims(map[string]any{"iat": time.Now().Unix() - 11})), false},
			"expired":                 {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"exp": time.Now().Unix()})), false},
			"without an end":          {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"exp": nil})), false},
			"valid for two years":     {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"exp": hour + 2*365*86400})), false},
			"issued in the future":    {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"iat": time.Now().Unix() + 11})), false},
			"without a time of issue": {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"iat": nil})), false},
			"not valid yet":           {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"nbf": time.Now().Unix() + 11})), false},
			"another audience":        {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"aud": "wiki"})), false},
			"another issuer":          {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"iss": issuer + "/"})), false},
			"a logout token":          {s.sign(jwt.SigningMethodRS256, "r", r, claims(map[string]any{"events": map[string]any{}})), false},
			"no token":                {"a.b.c", false},
		} {
			got, err := p.Verify(c.text, time.Now())
			if (err == nil) != c.valid {
				t.Errorf("%s: %v", name, err)
			}
			if errors.Is(err, oidc.ErrUnavailable) {
				t.Errorf("%s: it may be valid later", name)
			}
			if c.valid && (got.Kind != token.KindControl || got.Role != token.RoleViewer || got.Tenant != "acme" || got.Workspace != "prod" ||
				got.Subject != "ann@example.com" || got.Issuer != issuer || got.IssuedAt == nil || got.ExpiresAt.Unix() != hour) {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if n := s.fetched(); n != 2 {
			t.Errorf("the provider got %d requests", n)
		}
	})
}

// A new key is fetched soon after a token has it, but not sooner for many tokens; a removed one is no longer valid.
func TestKeysAreRotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		old, next := rsaKey(t), rsaKey(t)
		s.keys["old"] = old
		p := s.start()
		before := s.sign(jwt.SigningMethodRS256, "old", old, claims(nil))
		s.change(func() { s.keys = map[string]crypto.Signer{"next": next} })
		after := s.sign(jwt.SigningMethodRS256, "next", next, claims(nil))
		if _, err := p.Verify(before, time.Now()); err != nil {
			t.Errorf("before the keys are fetched again: %v", err)
		}
		if _, err := p.Verify(after, time.Now()); !errors.Is(err, oidc.ErrUnavailable) { // also right after they were fetched
			t.Error(err)
		}
		time.Sleep(11 * time.Second)
		if _, err := p.Verify(after, time.Now()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		_, _ = p.Verify(s.sign(jwt.SigningMethodRS256, "x", old, claims(nil)), time.Now()) // has the keys fetched
		synctest.Wait()
		if _, err := p.Verify(before, time.Now()); err == nil || errors.Is(err, oidc.ErrUnavailable) {
			t.Errorf("a removed key: %v", err)
		}
		fetched := s.fetched()
		for range 600 { // a minute of strangers' tokens
			_, _ = p.Verify(s.sign(jwt.SigningMethodHS256, "x", []byte("x"), claims(nil)), time.Now())
			_, _ = p.Verify(s.sign(jwt.SigningMethodRS256, "x", old, claims(nil)), time.Now())
			time.Sleep(100 * time.Millisecond)
		}
		if n := s.fetched() - fetched; n > 14 {
			t.Errorf("%d requests in a minute", n)
		}
	})
}

// A provider of tokens for programs publishes keys only. What cannot be used of its keys does not matter; a bad address does.
func TestWhatAProviderPublishes(t *testing.T) {
	for name, c := range map[string]struct {
		metadata string
		valid    bool
	}{
		"keys only":        {`{"issuer":"` + issuer + `","jwks_uri":"` + issuer + `/keys"}`, true},
		"no keys":          {`{"issuer":"` + issuer + `"}`, false},
		"another issuer":   {`{"issuer":"` + issuer + `/","jwks_uri":"` + issuer + `/keys"}`, false},
		"keys without TLS": {`{"issuer":"` + issuer + `","jwks_uri":"http://id.example.com/keys"}`, false},
		"a device without TLS": {
			`{"issuer":"` + issuer + `","jwks_uri":"` + issuer + `/keys","device_authorization_endpoint":"http://x/d"}`, false,
		},
		"an endpoint of a file": {`{"issuer":"` + issuer + `","jwks_uri":"` + issuer + `/keys","token_endpoint":"file:///x"}`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			key := rsaKey(t)
			s.keys["k"], s.metadata = key, c.metadata
			p := s.start()
			text := s.sign(jwt.SigningMethodRS256, "k", key, claims(nil))
			if _, err := p.Verify(text, time.Now()); (err == nil) != c.valid || err != nil && !errors.Is(err, oidc.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// While the provider is down, its keys stay valid; a server that starts meanwhile learns them later.
func TestOutageOfTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		key := rsaKey(t)
		s.keys["k"], s.down = key, true
		p := s.start()
		text := s.sign(jwt.SigningMethodRS256, "k", key, claims(map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()}))
		if _, err := p.Verify(text, time.Now()); !errors.Is(err, oidc.ErrUnavailable) {
			t.Errorf("without any key: %v", err)
		}
		if _, ok := p.SignIn(); ok {
			t.Error("one can sign in")
		}
		s.change(func() { s.down = false })
		time.Sleep(time.Minute)
		if _, err := p.Verify(text, time.Now()); err != nil {
			t.Error(err)
		}
		if is, ok := p.SignIn(); !ok || is.ClientID != "lubdub" || is.Token != "https://token.example.com/token" || len(is.Scopes) == 0 {
			t.Errorf("%+v", is)
		}
		s.change(func() { s.down = true })
		time.Sleep(48 * time.Hour)
		if _, err := p.Verify(text, time.Now()); err != nil {
			t.Errorf("after two days: %v", err)
		}
	})
}
