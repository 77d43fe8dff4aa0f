package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// tokenSource supplies the token for control calls.
type tokenSource interface {
	// current returns the token; empty: none.
	current(ctx context.Context) (string, error)
	// renew returns a new token after `refused` was refused; the same one: there is no other.
	renew(ctx context.Context, refused string) (string, error)
}

type fixedToken string

func (t fixedToken) current(context.Context) (string, error)       { return string(t), nil }
func (t fixedToken) renew(context.Context, string) (string, error) { return string(t), nil }

// changingToken calls for a token when it has none or the current one was refused. Many callers that are refused at the same time cause one
// call.
type changingToken struct {
	get func(context.Context) (string, error)

	mu   sync.Mutex
	have string
}

func (t *changingToken) current(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fetch(ctx, t.have == "")
}

func (t *changingToken) renew(ctx context.Context, refused string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fetch(ctx, t.have == refused)
}

func (t *changingToken) fetch(ctx context.Context, refresh bool) (string, error) {
	if !refresh {
		return t.have, nil
	}
	token, err := t.get(ctx)
	if err != nil {
		return "", fmt.Errorf("lubdub: the token: %w", err)
	}
	if err := checkToken(token); err != nil {
		return "", err
	}
	t.have = token
	return token, nil
}

func readToken(path string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		token := strings.TrimSpace(string(text))
		if token == "" {
			return "", fmt.Errorf("%s is empty; put there what `lubdub token` prints", path)
		}
		return token, nil
	}
}

// checkToken refuses a value that cannot be a control token, without repeating it.
func checkToken(token string) error {
	for _, c := range []byte(token) {
		if c <= ' ' || c >= 0x7f {
			return errors.New("lubdub: the token has invalid characters; give what `lubdub token` prints, without quotes or spaces")
		}
	}
	if kind := tokenKind(token); kind == "task" || kind == "worker" {
		return fmt.Errorf("lubdub: this is the token of a %s, which is valid for that %[1]s's own calls only; "+
			"make one for the client with `lubdub token --role …`", kind)
	}
	return nil
}

// tokenKind returns the kind of a token, read without verifying it; "": unknown.
func tokenKind(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Kind string `json:"knd"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Kind
}
