package webhooks_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lubdub-io/lubdub/tracker"
	"github.com/lubdub-io/lubdub/tracker/events"
	"github.com/lubdub-io/lubdub/tracker/trackertest"
	"github.com/lubdub-io/lubdub/tracker/webhooks"
)

// receiver is the outside: it responds as the test sets it to, and records what it was sent.
type receiver struct {
	mu     sync.Mutex
	posts  []post
	answer func(url string, p post) (status int, err error) // nil: 200
	hangs  func(ctx context.Context, url string) bool       // returns true once ctx has ended; nil: no post hangs
}

type post struct {
	url     string
	header  map[string]string
	body    string
	message struct {
		Type      string
		Timestamp string
		Data      struct {
			ID, Type, Subject, RunID string
			Data                     struct {
				Reason, From, To string
				Dropped          int
			}
		}
	}
}

func (p *post) id() string { return p.header["webhook-id"] }

func (r *receiver) Check(url string) error {
	if strings.Contains(url, "forbidden") {
		return errors.New("cannot be called")
	}
	return nil
}

func (r *receiver) Post(ctx context.Context, url string, header map[string]string, body []byte) (int, []byte, error) {
	p := post{url: url, header: header, body: string(body)}
	if err := json.Unmarshal(body, &p.message); err != nil {
		return 0, nil, err
	}
	r.mu.Lock()
	r.posts = append(r.posts, p)
	answer, hangs := r.answer, r.hangs
	r.mu.Unlock()
	if hangs != nil && hangs(ctx, url) {
		return 0, nil, ctx.Err()
	}
	status, err := 200, ctx.Err()
	if answer != nil {
		status, err = answer(url, p)
	}
	return status, []byte("answer"), err
}

func (r *receiver) answers(f func(url string, p post) (int, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *receiver) always(status int) {
	r.answers(func(string, post) (int, error) { return status, nil })
}

// take returns what arrived since its last call.
func (r *receiver) take() []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.posts
	r.posts = nil
	return all
}

func kinds(posts []post) (all []string) {
	for _, p := range posts {
		all = append(all, p.message.Type)
	}
	return all
}

// signedBy reports whether a message is signed with a secret.
func (p *post) signedBy(t testing.TB, secret string) bool {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(p.id() + "." + p.header["webhook-timestamp"] + "." + p.body))
	return slices.Contains(strings.Fields(p.header["webhook-signature"]), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// hooked is a harness with a receiver.
type hooked struct {
	*trackertest.Harness
	*receiver
}

func contract(t *testing.T, test func(h *hooked), change ...func(*tracker.Options)) {
	t.Helper()
	outside := map[testing.TB]*receiver{}
	var mu sync.Mutex
	trackertest.Contract(t, func(h *trackertest.Harness) {
		mu.Lock()
		r := outside[nil]
		mu.Unlock()
		test(&hooked{h, r})
	}, append([]func(*tracker.Options){func(o *tracker.Options) {
		r := &receiver{}
		mu.Lock()
		outside[nil] = r
		mu.Unlock()
		o.WebhookPoster = r
	}}, change...)...)
}

func (h *hooked) create(id string, types ...string) *webhooks.Webhook {
	h.Helper()
	w, err := h.Webhooks.Create(h.Ctx, webhooks.NewWebhook{Scope: trackertest.Scope, ID: id, Settings: settings(id, types...)})
	if err != nil {
		h.Fatal(err)
	}
	return w
}

func settings(id string, types ...string) webhooks.Settings {
	return webhooks.Settings{URL: "https://example.com/" + id, Enabled: true, Filter: events.Filter{Types: types}}
}

func (h *hooked) deliver() []post {
	h.Helper()
	if err := h.Sweeper.Deliver(h.Ctx); err != nil {
		h.Fatal(err)
	}
	return h.take()
}

func (h *hooked) hook(id string) *webhooks.Webhook {
	h.Helper()
	w, err := h.Webhooks.Get(h.Ctx, trackertest.Scope, id)
	if err != nil {
		h.Fatal(err)
	}
	return w
}

func (h *hooked) deliveries(id string, status webhooks.Status) []*webhooks.Delivery {
	h.Helper()
	return h.listed(webhooks.DeliveryFilter{WebhookID: id, Status: status})
}

// listed returns all pages of a list.
func (h *hooked) listed(f webhooks.DeliveryFilter) (all []*webhooks.Delivery) {
	h.Helper()
	for f.Scope, f.PageSize = trackertest.Scope, 7; ; {
		page, err := h.Webhooks.Deliveries(h.Ctx, f)
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, page.Deliveries...)
		if f.After = page.Next; f.After == "" {
			return all
		}
	}
}
