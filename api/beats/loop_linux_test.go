package beats

import (
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/httpapi"
	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/model"
	"github.com/lubdub-io/lubdub/tracker/revocations"
)

// noTracker knows nothing of attempts and revocations.
type noTracker struct{}

func (noTracker) Attempt(a model.Attempt) *model.Attempt                        { return &a }
func (noTracker) Skew() time.Duration                                           { return 0 }
func (noTracker) Subscribe(subscriber func(all, news []revocations.Revocation)) { subscriber(nil, nil) }

// A turn opens so many tokens and no more.
func TestATurnOpensSomeTokens(t *testing.T) {
	t.Parallel()
	keys, err := token.NewKeyring(token.Key{ID: "k1", Secret: []byte(strings.Repeat("1", token.MinKeyBytes))})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2025, 1, 15, 10, 5, 0, 0, time.UTC)
	a, err := httpapi.New(httpapi.Config{Attempts: noTracker{}, Revocations: noTracker{}, Keys: keys, TokenCacheSize: 64, MaxControl: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := &beatLoop{h: New(a, nil)}
	open := func() bool {
		attempt := &model.Attempt{Scope: model.Scope{Tenant: "acme", Workspace: "prod"}, TaskID: "task_1", Number: 1, IssuedAt: now}
		text, _, err := httpapi.MintTask(keys, attempt, time.Hour, true)
		if err != nil {
			t.Fatal(err)
		}
		who, opened := l.principal([]byte(text), now)
		return who != nil && opened != nil
	}
	for i := range maxOpened {
		if !open() {
			t.Fatalf("token %d is not opened", i)
		}
	}
	if open() {
		t.Error("a turn opens any number of tokens")
	}
	if l.Turn(); !open() {
		t.Error("the next turn opens none")
	}
}
