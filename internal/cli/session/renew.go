package session

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"golang.org/x/oauth2"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

const (
	renewBefore = 30 * time.Second // how long before its end a token is renewed
	renewWithin = 30 * time.Second // how long a renewal may take
)

// renewed returns the context's token, after it has renewed it with the OpenID provider if it is about to expire. Of several commands
// that find it so one renews it, since the provider may accept a refresh token only once.
func (t *Credential) renewed(ctx context.Context) (string, error) {
	t.renewing.Lock()
	defer t.renewing.Unlock()
	if lasts(t.Text) {
		return t.Text, nil
	}
	err := contexts.Change(t.env.Getenv, func(file *contexts.File) error {
		at, ok := file.Contexts[t.context]
		if !ok || at.Login == nil {
			return exit.Misusef("the context %s is no longer signed in; run: lubdub login", t.context)
		}
		if lasts(at.Token) {
			t.Text = at.Token
			return nil
		}
		// What has begun is finished: the provider accepts the refresh token only once.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewWithin)
		defer cancel()
		save := func() error {
			file.Contexts[t.context] = at
			return file.Save()
		}
		if err := renew(ctx, t.env, &at, save); err != nil {
			return fmt.Errorf("the token of the context %s cannot be renewed: %w", t.context, err)
		}
		t.Text = at.Token
		return save()
	})
	return t.Text, err
}

// lasts reports whether a token need not be renewed yet.
func lasts(token string) bool {
	_, claims, err := ReadClaims(token)
	return err == nil && time.Until(time.Unix(claims.ExpiresAt, 0)) > renewBefore
}

// renew gives a context a new token from the OpenID provider. It saves the next refresh token as soon as it has it.
func renew(ctx context.Context, env *Env, at *contexts.Context, save func() error) error {
	if at.Login.RefreshToken == "" {
		return errors.New("the provider has issued no refresh token. Sign in again: lubdub login")
	}
	ctx, err := WithProviderClient(ctx, at)
	if err != nil {
		return err
	}
	cfg := oauth2.Config{ClientID: at.Login.ClientID}
	cfg.Endpoint = oauth2.Endpoint{TokenURL: at.Login.TokenURL, AuthStyle: oauth2.AuthStyleInParams}
	tokens, err := cfg.TokenSource(ctx, &oauth2.Token{RefreshToken: at.Login.RefreshToken}).Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError:
		return fmt.Errorf("%w\nSign in again: lubdub login", err)
	case err != nil:
		return exit.Unanswered(err)
	}
	at.Login.RefreshToken = tokens.RefreshToken
	if err := save(); err != nil {
		return err
	}
	return SignIn(ctx, env, at, tokens)
}

// WithProviderClient returns a context in which requests to the OpenID provider have a time limit, and in which the context's authorities
// are trusted besides the system's.
func WithProviderClient(ctx context.Context, at *contexts.Context) (context.Context, error) {
	transport, err := newTransport(*at)
	if err != nil {
		return nil, err
	}
	if at.CAFile != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		pem, err := os.ReadFile(at.CAFile)
		if err != nil {
			return nil, exit.Misused(err)
		}
		roots.AppendCertsFromPEM(pem)
		transport.RoundTripper.(*http.Transport).TLSClientConfig.RootCAs = roots
	}
	return context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: transport, Timeout: 10 * time.Second}), nil
}

// SignIn gives a context a token of the server for the ID token of the provider.
func SignIn(ctx context.Context, env *Env, at *contexts.Context, tokens *oauth2.Token) error {
	idToken, _ := tokens.Extra("id_token").(string)
	if idToken == "" {
		return errors.New("the provider has issued no ID token")
	}
	with := *at
	with.Token, with.TokenCommand, with.Login = idToken, "", nil
	s, err := (&Flags{Timeout: 10 * time.Second}).OpenAt(env, "", with)
	if err != nil {
		return err
	}
	defer s.Client.Close()
	life := (12 * time.Hour).Milliseconds() // the server's longest; a token expires no later than the ID token
	_, made, err := Post[v1.CreateTokenResponse](ctx, s, "/v1/tokens", v1.CreateTokenRequest{TTLMs: &life})
	if err != nil {
		return err
	}
	at.Token, at.TokenCommand = made.Token, ""
	at.Login.RefreshToken = tokens.RefreshToken
	return nil
}
