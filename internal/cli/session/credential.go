package session

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/lubdub-io/lubdub/internal/cli/contexts"
	"github.com/lubdub-io/lubdub/internal/cli/output"
)

// Credential is a session's token, as far as it can be read without the key that signed it.
type Credential struct {
	env               *Env
	context           string // the context's name; empty: none
	Text              string
	command           string          // prints the token; empty: it is Text
	login             *contexts.Login // renews the token; nil: nothing does
	renewing          sync.Mutex
	Tenant, Workspace string
}

// Token returns the token: the one that is known, or what the command of the context prints.
func (t *Credential) Token(ctx context.Context) (string, error) {
	if t.login != nil {
		return t.renewed(ctx)
	}
	if t.command == "" {
		return t.Text, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", t.command)
	cmd.Env, cmd.Stderr, cmd.Stdin = t.env.Environ, t.env.Stderr, t.env.Stdin
	cmd.WaitDelay = time.Second // what the command started may keep its output open
	out, err := cmd.Output()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Errorf("the token command of the context %s failed: %w", t.context, err)
	}
	if t.Text = strings.TrimSpace(string(out)); t.Text == "" {
		return "", errors.New("the token command of the context " + t.context + " printed nothing")
	}
	return t.Text, nil
}

// Claims are the contents of a token.
type Claims struct {
	Kind      string `json:"knd"`
	Role      string `json:"rol,omitempty"`
	Subject   string `json:"sub,omitempty"`
	Tenant    string `json:"ten"`
	Workspace string `json:"wsp"`
	Queue     string `json:"que,omitempty"`
	Run       string `json:"run,omitempty"`
	Task      string `json:"tsk,omitempty"`
	Attempt   int    `json:"att,omitempty"`
	Worker    string `json:"wkr,omitempty"`
	Machine   string `json:"mch,omitempty"`
	Issuer    string `json:"iss,omitempty"`
	IssuedAt  int64  `json:"iat,omitempty"`
	ExpiresAt int64  `json:"exp,omitempty"`
}

// ReadClaims reads a token without verifying it.
func ReadClaims(token string) (key string, claims *Claims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", nil, fmt.Errorf("this is not a token: a token has three parts separated by dots, and this has %d", len(parts))
	}
	var header struct {
		Key string `json:"kid"`
	}
	claims = new(Claims)
	for i, into := range []any{&header, claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(text, into) != nil {
			return "", nil, fmt.Errorf("this is not a token: part %d cannot be decoded", i+1)
		}
	}
	return header.Key, claims, nil
}

// RenewalHint explains how to get the next token, after one was refused.
func (t *Credential) RenewalHint() string {
	into := ""
	if t.context != "" {
		into = " | lubdub context set " + t.context + " --token -"
	}
	if t.login != nil {
		return "The sign-in has ended. Sign in again: lubdub login --context " + t.context
	}
	if t.Text == "" {
		return "No token was sent. Create one on a host that has the signing keys: lubdub token --role operator" + into
	}
	_, claims, err := ReadClaims(t.Text)
	if err != nil {
		return "The value that was sent is not a token. Create one on a host that has the signing keys: lubdub token --role operator" + into
	}
	command := fmt.Sprintf("lubdub token --role %s --tenant '%s' --workspace '%s'", cmp.Or(claims.Role, "operator"), claims.Tenant,
		claims.Workspace)
	if claims.Subject != "" {
		command += " --subject '" + output.Clean(claims.Subject) + "'"
	}
	why := "The server rejects this token: it was revoked, or signed with keys of another deployment."
	if ended := time.Unix(claims.ExpiresAt, 0); time.Now().After(ended) {
		why = "The token expired " + output.Duration(time.Since(ended)) + " ago."
	}
	return why + " Create a new one on a host that has the signing keys: " + command + into
}

// MayOperate reports whether the token's role may act on tasks, workers and queues. The server decides; this only chooses the advice.
func (t *Credential) MayOperate() bool {
	_, claims, err := ReadClaims(t.Text)
	return err != nil || claims.Role != "viewer" && claims.Role != "submitter"
}

// role describes the token whose role was not enough.
func (t *Credential) role() string {
	_, claims, err := ReadClaims(t.Text)
	if err != nil || claims.Role == "" {
		return ""
	}
	from := ""
	if t.context != "" {
		from = ", of the context " + t.context + ","
	}
	return fmt.Sprintf("\nThe token%s has the role %s in %s/%s", from, claims.Role, claims.Tenant, claims.Workspace)
}
