package webhooks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Secrets have the format of Standard Webhooks: whsec_ and base64 of 24 to 64 bytes.
const (
	secretPrefix   = "whsec_"
	minSecret      = 24
	maxSecret      = 64
	newSecretBytes = 32

	oldSecretLife = 24 * time.Hour // how long a replaced secret still signs
	maxOldSecrets = 4
)

// NewSecret returns a random secret.
func NewSecret() string {
	b := make([]byte, newSecretBytes)
	_, _ = rand.Read(b) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

func secretBytes(secret string) ([]byte, bool) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	return b, ok && err == nil && len(b) >= minSecret && len(b) <= maxSecret
}

// checkSecret returns an error if a secret is invalid. The error does not contain the secret.
func checkSecret(field, secret string) error {
	if _, ok := secretBytes(secret); !ok {
		return invalid(field, "is not a secret; use whsec_ and the base64 of %d to %d random bytes, or omit it to let Lubdub generate one",
			minSecret, maxSecret)
	}
	return nil
}

// aSecret is one secret of a webhook.
type aSecret struct {
	text  string
	until time.Time // zero: the newest one
}

// unpackSecrets parses secrets as scripts store them, newest first: each secret:until, separated by spaces.
func unpackSecrets(packed string) (all []aSecret) {
	for _, one := range strings.Fields(packed) {
		text, until, _ := strings.Cut(one, ":")
		s := aSecret{text: text}
		if ms, _ := strconv.ParseInt(until, 10, 64); ms > 0 {
			s.until = time.UnixMilli(ms).UTC()
		}
		all = append(all, s)
	}
	return all
}

// holding returns the secrets that are valid at a time.
func holding(all []aSecret, at time.Time) []aSecret {
	return slices.DeleteFunc(all, func(s aSecret) bool { return !s.until.IsZero() && !at.Before(s.until) })
}

// sign returns the headers of a message, with signatures by all secrets for a time.
func sign(secrets []aSecret, message string, at time.Time, body []byte) map[string]string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	var signatures []string
	for _, s := range secrets {
		key, _ := secretBytes(s.text)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(message + "." + stamp + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return map[string]string{
		"content-type": "application/json", "user-agent": "lubdub-webhooks",
		"webhook-id": message, "webhook-timestamp": stamp, "webhook-signature": strings.Join(signatures, " "),
	}
}
