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
	cfg     *Config
	client  *http.Client
	log     *slog.Logger
	changed func()
	known   atomic.Pointer[known] // nil: nothing has been fetched
	wake    chan struct{}
}

// known is what the provider has published.
type known struct {
	endpoints Endpoints
	keys      keyfunc.Keyfunc
	text      string // the keys
	at        time.Time
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
	return &Provider{
		cfg: cfg, client: &http.Client{Transport: transport, Timeout: fetchTimeout}, log: log, changed: func() {}, wake: make(chan struct{}, 1),
	}
}

// OnChange sets what is called when the keys have changed: tokens that were verified before may be invalid. It is called before Run.
func (p *Provider) OnChange(f func()) { p.changed = f }

// Run fetches the keys regularly, and soon after a token had an unknown one, until the context ends. While the provider is unreachable,
// the last keys stay valid.
func (p *Provider) Run(ctx context.Context) {
	var failed error
	for ctx.Err() == nil {
		err := p.refresh(ctx)
		wait := refreshEvery
		if err != nil {
			wait = refreshPause
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && failed == nil:
			p.log.Warn("the OpenID provider cannot be reached: tokens are verified with the keys that are known", "issuer", p.cfg.Issuer,
				"error", err)
		case err == nil && failed != nil:
			p.log.Info("the OpenID provider can be reached again", "issuer", p.cfg.Issuer)
		}
		failed = err
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
	for name, address := range map[string]string{"authorization_endpoint": to.Authorization, "token_endpoint": to.Token, "jwks_uri": to.Keys} {
		if u, err := url.Parse(address); err != nil || u.Host == "" || !secure(u.Scheme+"://"+u.Host) {
			return fmt.Errorf("the provider's %s is %q, which is not an https:// URL", name, address)
		}
	}
	store, err := jwkset.NewStorageFromHTTP(to.Keys, jwkset.HTTPClientStorageOptions{Client: p.client, Ctx: ctx, HTTPTimeout: fetchTimeout})
	if err != nil {
		return err
	}
	text, err := store.JSONPublic(ctx)
	if err != nil {
		return err
	}
	keys, err := keyfunc.New(keyfunc.Options{Storage: store, UseWhitelist: []jwkset.USE{"", jwkset.UseSig}})
	if err != nil {
		return err
	}
	to.Keys = ""
	old := p.known.Swap(&known{endpoints: to, keys: keys, text: string(text), at: time.Now()})
	if old != nil && old.text != string(text) {
		p.changed()
	}
	return nil
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

// Verify returns the claims of a control token that a token of the provider stands for. The error is ErrUnavailable if its key is not
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
	if _, critical := t.Header["crit"]; critical {
		return nil, errForeign // critical extensions, which are not supported
	}
	is := p.known.Load()
	if is == nil {
		return nil, ErrUnavailable
	}
	key, err := is.keys.Keyfunc(t)
	if errors.Is(err, jwkset.ErrKeyNotFound) && time.Since(is.at) >= refreshPause {
		select {
		case p.wake <- struct{}{}:
		default:
		}
		return nil, ErrUnavailable
	}
	return key, err
}

// SignIn is what a browser or a command needs to sign a person in.
type SignIn struct {
	Endpoints
	ClientID      string   `json:"client_id"`
	Scopes        []string `json:"scopes"`
	IdleTimeoutMs int64    `json:"idleTimeoutMs,omitempty"`
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
