package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Why a message is not a webhook's.
var (
	// ErrWebhookHeaders means that webhook-id, webhook-timestamp or webhook-signature is missing or malformed.
	ErrWebhookHeaders = errors.New("lubdub: the webhook's headers are not complete")
	// ErrWebhookTime means that the message was signed too long ago, or by a clock that is ahead.
	ErrWebhookTime = errors.New("lubdub: the webhook's timestamp is too far from now")
	// ErrWebhookSignature means that no secret matches the signature: answer with 401 and do nothing else.
	ErrWebhookSignature = errors.New("lubdub: the webhook's signature matches none of the secrets")
)

// Verifier verifies a webhook's messages, as Standard Webhooks 1.0 defines. Any number of goroutines may use it.
type Verifier struct {
	keys [][]byte
	// Tolerance is how far a message's timestamp may be from now; NewVerifier sets 5 minutes.
	Tolerance time.Duration
	// Now is the clock; NewVerifier sets time.Now.
	Now func() time.Time
}

// NewVerifier returns a verifier with a webhook's secrets, whsec_…; give several while a secret rotates.
func NewVerifier(secrets ...string) (*Verifier, error) {
	v := &Verifier{Tolerance: 5 * time.Minute, Now: time.Now}
	for i, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < 24 || len(key) > 64 {
			return nil, fmt.Errorf("lubdub: secret %d is not whsec_ followed by the base64 of 24 to 64 bytes", i+1)
		}
		v.keys = append(v.keys, key)
	}
	if len(v.keys) == 0 {
		return nil, errors.New("lubdub: give the webhook's secret")
	}
	return v, nil
}

// WebhookMessage is the content of a webhook message.
type WebhookMessage struct {
	// ID is the same in each repeat: a receiver that has processed it can skip repeats.
	ID        string  `json:"-"`
	Type      string  `json:"type"`
	Timestamp v1.Time `json:"timestamp"`
	// Data is the event, or the data of another message type.
	Data json.RawMessage `json:"data"`
}

// Event returns the event in the message.
func (m *WebhookMessage) Event() (*v1.Event, error) {
	var e v1.Event
	if err := json.Unmarshal(m.Data, &e); err != nil {
		return nil, fmt.Errorf("lubdub: a webhook's data: %w", err)
	}
	return &e, nil
}

// Verify returns a message if its headers prove that it is the webhook's. The body is the request's, byte for byte.
func (v *Verifier) Verify(header http.Header, body []byte) (*WebhookMessage, error) {
	id, at, signatures := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), header.Get("Webhook-Signature")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if id == "" || signatures == "" || err != nil {
		return nil, ErrWebhookHeaders
	}
	if away := v.Now().Sub(time.Unix(seconds, 0)); away > v.Tolerance || away < -v.Tolerance {
		return nil, ErrWebhookTime
	}
	if !v.signed(id, at, signatures, body) {
		return nil, ErrWebhookSignature
	}
	m := &WebhookMessage{ID: id}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("lubdub: a webhook's body: %w", err)
	}
	return m, nil
}

func (v *Verifier) signed(id, at, signatures string, body []byte) bool {
	for _, key := range v.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		want := mac.Sum(nil)
		for one := range strings.SplitSeq(signatures, " ") {
			encoded, ours := strings.CutPrefix(one, "v1,")
			if got, err := base64.StdEncoding.DecodeString(encoded); ours && err == nil && hmac.Equal(got, want) {
				return true
			}
		}
	}
	return false
}
