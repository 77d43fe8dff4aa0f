package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/oauth2"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// renewBefore is how long before its end a token is renewed.
const renewBefore = 30 * time.Second

// renewed returns the context's token, after it has renewed it with the OpenID provider if it is about to expire. Of several commands
// that find it so one renews it, since the provider may accept a refresh token only once.
func (t *Credential) renewed(ctx context.Context) (string, error) {
	t.renewing.Lock()
	defer t.renewing.Unlock()
	if lasts(t.Text) {
		return t.Text, nil
	}
	err := contexts.Locked(t.env.Getenv, func(file *contexts.File) error {
		at, ok := file.Contexts[t.context]
		if !ok || at.Login == nil {
			return exit.Misusef("the context %s is no longer signed in; run: lubdub login", t.context)
		}
		if !lasts(at.Token) {
			if err := renew(ctx, t.env, &at); err != nil {
				return fmt.Errorf("the sign-in of the context %s cannot be renewed: %w\nSign in again: lubdub login --context %[1]s", t.context, err)
			}
			file.Contexts[t.context] = at
		}
		t.Text = at.Token
		return nil
	})
	return t.Text, err
}

// lasts reports whether a token need not be renewed yet.
func lasts(token string) bool {
	_, claims, err := ReadClaims(token)
	return err == nil && time.Until(time.Unix(claims.ExpiresAt, 0)) > renewBefore
}

// renew gives a context a new token from the OpenID provider.
func renew(ctx context.Context, env *Env, at *contexts.Context) error {
	if at.Login.RefreshToken == "" {
		return errors.New("the provider has issued no refresh token")
	}
	cfg := oauth2.Config{ClientID: at.Login.ClientID}
	cfg.Endpoint = oauth2.Endpoint{TokenURL: at.Login.TokenURL, AuthStyle: oauth2.AuthStyleInParams}
	tokens, err := cfg.TokenSource(ctx, &oauth2.Token{RefreshToken: at.Login.RefreshToken}).Token()
	if err != nil {
		return err
	}
	return SignIn(ctx, env, at, tokens)
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
