package api

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/lubdub-io/lubdub/api/internal/page"
	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/api/token"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
	"github.com/lubdub-io/lubdub/tracker/revocations"
)

// idp is an OpenID provider in memory, with one key.
type idp struct {
	key  ed25519.PrivateKey
	up   atomic.Bool
	oidc *oidc.Provider
}

const idpURL = "https://id.example.com"

func newIDP(t *testing.T) *idp {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := oidc.Parse([]byte("issuer: " + idpURL + "\nclientId: lubdub\ngrants:\n" +
		"- {claim: role, value: boss, role: admin, tenant: acme, workspace: prod}\n" +
		"- {claim: role, value: guest, role: viewer, tenant: acme, workspace: prod}"))
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{key: key}
	p.oidc = oidc.NewProvider(cfg, p, slog.New(slog.DiscardHandler))
	return p
}

// RoundTrip answers the requests for the provider's metadata and keys.
func (p *idp) RoundTrip(r *http.Request) (*http.Response, error) {
	if !p.up.Load() {
		return nil, errors.New("connection refused")
	}
	body, err := json.Marshal(map[string]string{"issuer": idpURL, "authorization_endpoint": idpURL + "/auth",
		"token_endpoint": "https://token.example.com/token", "jwks_uri": idpURL + "/keys"})
	if strings.HasSuffix(r.URL.Path, "/keys") {
		keys := jwkset.NewMemoryStorage()
		var jwk jwkset.JWK
		if jwk, err = jwkset.NewJWKFromKey(p.key.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: "k"}}); err == nil {
			err = keys.KeyWrite(r.Context(), jwk)
			body, _ = keys.JSONPublic(r.Context())
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// start fetches the keys.
func (p *idp) start(t *testing.T) {
	p.up.Store(true)
	go p.oidc.Run(t.Context())
	for _, ok := p.oidc.SignIn(); !ok; _, ok = p.oidc.SignIn() {
		runtime.Gosched()
	}
}

// token returns a token that is valid for half an hour from a time on.
func (p *idp) token(t *testing.T, from time.Time, role, email string) string {
	made := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": idpURL, "aud": "lubdub", "role": role, "email": email,
		"iat": from.Unix(), "exp": from.Add(30 * time.Minute).Unix()})
	made.Header["kid"] = "k"
	text, err := made.SignedString(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A provider's token is a control token: of its role and scope, with its bearer's name, until it expires or is revoked.
func TestTokensOfAnOpenIDProvider(t *testing.T) {
	t.Parallel()
	p := newIDP(t)
	e := newEnv(t, func(c *Config) { c.Provider = p.oidc })
	boss, guest := p.token(t, e.now(), "boss", "ann@example.com"), p.token(t, e.now(), "guest", "bob@example.com")
	is := e.do("GET", "/v1/tasks", boss, "").refused(503, v1.CodeIssuerUnavailable)
	if !strings.Contains(is.Message, "Retry") {
		t.Error(is.Message)
	}
	p.start(t)
	e.do("GET", "/v1/tasks", boss, "").want(200)
	e.do("GET", "/v1/tasks", guest, "").want(200)
	e.do("GET", "/v1/tasks?tenantId=other", guest, "").refused(403, v1.CodeForbidden)
	e.do("POST", "/v1/queues/mail/pause", guest, "").refused(403, v1.CodeForbidden)
	is = e.do("GET", "/v1/tasks", p.token(t, e.now(), "stranger", "eve@example.com"), "").refused(403, v1.CodeForbidden)
	if !strings.Contains(is.Message, "eve@example.com") {
		t.Error(is.Message)
	}
	e.do("GET", "/v1/tasks", guest[:len(guest)-4]+"AAAA", "").refused(401, v1.CodeUnauthorized)
	e.do("POST", "/v1/tasks/task_1/heartbeat", boss, `{"attempt":1}`).refused(403, v1.CodeForbidden)

	var made v1.CreateTokenResponse
	e.do("POST", "/v1/tokens", boss, `{"ttlMs":43200000}`).want(201).into(&made)
	if c := e.claims(made.Token); c.Role != token.RoleAdmin || c.Subject != "ann@example.com" || c.Issuer != "lubdub" ||
		made.TenantID != "acme" ||
		!made.ExpiresAt.Equal(e.now().Add(30*time.Minute)) {
		t.Errorf("a token for a page: %+v", c)
	}
	gone := []revocations.Revocation{{
		Kind: revocations.OfSubject, Tenant: "acme", Workspace: "prod", Name: "bob@example.com", IssuedBefore: e.now().Add(time.Second),
	}}
	e.fake.onRevocation(gone, gone)
	e.do("GET", "/v1/tasks", guest, "").refused(401, v1.CodeUnauthorized)
	e.advance(30 * time.Minute)
	e.do("GET", "/v1/tasks", boss, "").refused(401, v1.CodeUnauthorized)
	e.do("GET", "/v1/tasks", made.Token, "").refused(401, v1.CodeUnauthorized)
}

// The dashboard learns where to sign in, and may call the provider's token endpoint and nothing else.
func TestHowToSignIn(t *testing.T) {
	t.Parallel()
	p := newIDP(t)
	e := newEnv(t, func(c *Config) { c.Provider = p.oidc })
	if res, text := e.visit("/ui/oidc.json"); res.StatusCode != 503 || !strings.Contains(text, v1.CodeIssuerUnavailable) {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	p.start(t)
	res, text := e.visit("/ui/oidc.json")
	var is oidc.SignIn
	if err := json.Unmarshal([]byte(text), &is); err != nil || res.StatusCode != 200 || res.Header.Get("Cache-Control") != "no-store" ||
		is.ClientID != "lubdub" || is.Issuer != idpURL || is.Authorization != idpURL+"/auth" || is.Token != "https://token.example.com/token" {
		t.Errorf("%v %d %s", err, res.StatusCode, text)
	}
	res, _ = e.visit("/ui/")
	if got := res.Header.Get("Content-Security-Policy"); got != page.Policy("https://token.example.com") ||
		!strings.Contains(got, "connect-src 'self' https://token.example.com; ") {
		t.Error(got)
	}
	if res, text := newEnv(t).visit("/ui/oidc.json"); res.StatusCode != 200 || text != "{}" {
		t.Errorf("without a provider: %d %s", res.StatusCode, text)
	}
}
