package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"github.com/lubdub-io/lubdub/api/token"
)

// How often the provider is asked for its keys.
const (
	refreshEvery = 10 * time.Minute
	// refreshPause is the shortest time between two requests, however many tokens have unknown keys.
	refreshPause = 10 * time.Second
	fetchTimeout = 10 * time.Second
)

// ErrUnavailable means that a token cannot be verified now, since its key has not been fetched. The same token may be valid later.
var ErrUnavailable = errors.New("the keys of the OpenID provider have not been fetched")

var errForeign = errors.New("the token is not the provider's")

// algorithms are those with which tokens may be signed.
var algorithms = []string{jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg(), jwt.SigningMethodEdDSA.Alg()}

// Provider verifies the tokens of an OpenID provider. It never calls the provider while it verifies one.
type Provider struct {
	cfg    *Config
	client *http.Client
	log    *slog.Logger
	known  atomic.Pointer[known] // nil: nothing has been fetched
	wake   chan struct{}
}

// known is what the provider has published.
type known struct {
	endpoints Endpoints
	keys      keyfunc.Keyfunc
	at        time.Time // when it was fetched
}

// Endpoints are the addresses of a provider, by their names in its metadata.
type Endpoints struct {
	Issuer              string `json:"issuer"`
	Authorization       string `json:"authorization_endpoint"`
	Token               string `json:"token_endpoint"`
	DeviceAuthorization string `json:"device_authorization_endpoint,omitempty"`
	Keys                string `json:"jwks_uri,omitempty"`
}

// NewProvider returns a provider that knows no key until Run has fetched some. A nil transport is the default one.
func NewProvider(cfg *Config, transport http.RoundTripper, log *slog.Logger) *Provider {
	client := &http.Client{Transport: transport, Timeout: fetchTimeout, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if !secureOrigin(r.URL) {
			return fmt.Errorf("it redirects to %s, which is not https://", r.URL.Host)
		}
		return nil
	}}
	return &Provider{cfg: cfg, client: client, log: log, wake: make(chan struct{}, 1)}
}

// Run fetches the keys regularly, and soon after a token had an unknown one, until the context ends. While the provider is unreachable,
// the last keys stay valid.
func (p *Provider) Run(ctx context.Context) {
	failed := ""
	for ctx.Err() == nil {
		err := p.refresh(ctx)
		wait := refreshEvery
		if err != nil {
			wait = refreshPause
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && failed != err.Error():
			p.log.Warn("the keys of the OpenID provider cannot be fetched", "issuer", p.cfg.Issuer, "error", err)
			failed = err.Error()
		case err == nil && failed != "":
			p.log.Info("the keys of the OpenID provider can be fetched again", "issuer", p.cfg.Issuer)
			failed = ""
		}
		p.pause(ctx, wait)
	}
}

// pause waits until the next refresh is due: after a time, or after the shortest pause if a token has an unknown key.
func (p *Provider) pause(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(refreshPause):
	}
	select {
	case <-ctx.Done():
	case <-time.After(wait - refreshPause):
	case <-p.wake:
	}
}

func (p *Provider) refresh(ctx context.Context) error {
	var to Endpoints
	if err := p.fetch(ctx, strings.TrimSuffix(p.cfg.Issuer, "/")+"/.well-known/openid-configuration", &to); err != nil {
		return err
	}
	if to.Issuer != p.cfg.Issuer {
		return fmt.Errorf("the provider says that its issuer is %q, but oidc-file has %q", to.Issuer, p.cfg.Issuer)
	}
	for name, address := range map[string]string{"jwks_uri": to.Keys, "authorization_endpoint": to.Authorization, "token_endpoint": to.Token,
		"device_authorization_endpoint": to.DeviceAuthorization} {
		// Providers of tokens for programs have keys only.
		if u, err := url.Parse(address); err != nil || !secureOrigin(u) && (address != "" || name == "jwks_uri") {
			return fmt.Errorf("the provider's %s is %q, which is not an https:// URL", name, address)
		}
	}
	keys, err := p.fetchKeys(ctx, to.Keys)
	if err != nil {
		return err
	}
	to.Keys = ""
	p.known.Store(&known{endpoints: to, keys: keys, at: time.Now()})
	return nil
}

// fetchKeys returns the keys that can verify signatures. One that is of an unknown kind, or malformed, is omitted.
func (p *Provider) fetchKeys(ctx context.Context, address string) (keyfunc.Keyfunc, error) {
	var set jwkset.JWKSMarshal
	if err := p.fetch(ctx, address, &set); err != nil {
		return nil, err
	}
	store := jwkset.NewMemoryStorage()
	for _, one := range set.Keys {
		key, err := jwkset.NewJWKFromMarshal(one, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil {
			continue
		}
		if err := store.KeyWrite(ctx, key); err != nil {
			return nil, err
		}
	}
	return keyfunc.New(keyfunc.Options{Storage: store, UseWhitelist: []jwkset.USE{"", jwkset.UseSig}})
}

func (p *Provider) fetch(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", address, res.Status)
	}
	const most = 1 << 20
	return json.NewDecoder(io.LimitReader(res.Body, most)).Decode(into)
}

// Claimed reports whether a token says that the provider has issued it.
func (p *Provider) Claimed(text []byte) bool {
	claims := jwt.RegisteredClaims{}
	_, _, err := jwt.NewParser().ParseUnverified(string(text), &claims)
	return err == nil && claims.Issuer == p.cfg.Issuer
}

// Verify returns the claims of the control token that corresponds to a token of the provider. The error is ErrUnavailable if its key is not
// known yet, and a *Refused if the token is valid but allows nothing.
func (p *Provider) Verify(text string, now time.Time) (*token.Claims, error) {
	claims := jwt.MapClaims{}
	_, err := jwt.NewParser(
		jwt.WithValidMethods(algorithms),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithIssuer(p.cfg.Issuer),
		jwt.WithAudience(p.cfg.ClientID),
		jwt.WithStrictDecoding(),
		jwt.WithLeeway(clockSkew),
		jwt.WithTimeFunc(func() time.Time { return now }),
	).ParseWithClaims(text, claims, p.keyOf)
	if err != nil {
		return nil, err
	}
	if _, isEvent := claims["events"]; isEvent { // such as a logout token
		return nil, errForeign
	}
	found, err := p.cfg.control(claims)
	if err != nil {
		return nil, err
	}
	found.Issuer = p.cfg.Issuer
	if found.IssuedAt, err = claims.GetIssuedAt(); err != nil || found.IssuedAt == nil {
		return nil, errForeign // revocations are by the time of issue
	}
	found.ExpiresAt, err = claims.GetExpirationTime()
	// The leeway of the parser is not for the end, and revocations are kept for MaxControlLife.
	if err != nil || !now.Before(found.ExpiresAt.Time) || found.ExpiresAt.Sub(found.IssuedAt.Time) > token.MaxControlLife {
		return nil, errForeign
	}
	return found, nil
}

// clockSkew is how far the provider's clock may be ahead of this server's.
const clockSkew = 10 * time.Second

// keyOf returns the key of a token whose signature is not verified yet. Only a token that claims to be the provider's may cause keys to be
// fetched.
func (p *Provider) keyOf(t *jwt.Token) (any, error) {
	if issuer, err := t.Claims.GetIssuer(); err != nil || issuer != p.cfg.Issuer {
		return nil, errForeign
	}
	_, critical := t.Header["crit"] // critical extensions, which are not supported
	if _, named := t.Header["kid"].(string); critical || !named {
		return nil, errForeign
	}
	is := p.known.Load()
	if is == nil {
		return nil, ErrUnavailable
	}
	key, err := is.keys.Keyfunc(t)
	if !errors.Is(err, jwkset.ErrKeyNotFound) {
		return key, err
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
	if issued, err := t.Claims.GetIssuedAt(); err == nil && issued != nil && is.at.After(issued.Add(clockSkew)) {
		return nil, errForeign // its key was published before it was issued, and has been removed
	}
	return nil, ErrUnavailable
}

// SignIn is what a browser or a command needs to sign a person in.
type SignIn struct {
	Endpoints
	ClientID      string   `json:"client_id"`
	Scopes        []string `json:"scopes"`
	IdleTimeoutMs int64    `json:"idleTimeoutMs,omitempty"`
}

// Origin returns where people's browsers send requests for tokens.
func (p *Provider) Origin() string {
	address := p.cfg.Issuer
	if is := p.known.Load(); is != nil && is.endpoints.Token != "" {
		address = is.endpoints.Token
	}
	u, err := url.Parse(address)
	if err != nil {
		return "" // Parse and refresh refuse it
	}
	return u.Scheme + "://" + u.Host
}

// SignIn returns how to sign in; false: the provider has not been reached since the start.
func (p *Provider) SignIn() (s SignIn, ok bool) {
	is := p.known.Load()
	if is == nil {
		return s, false
	}
	return SignIn{
		Endpoints: is.endpoints, ClientID: p.cfg.ClientID, Scopes: p.cfg.Scopes, IdleTimeoutMs: p.cfg.IdleTimeout.Milliseconds(),
	}, true
}
