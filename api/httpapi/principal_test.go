package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/tracker/model"
)

var testTime = time.Date(2025, 1, 15, 10, 5, 0, 0, time.UTC)

func testKeys(t testing.TB) *token.Keyring {
	t.Helper()
	k, err := token.NewKeyring(token.Key{ID: "k1", Secret: []byte(strings.Repeat("1", token.MinKeyBytes))})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func testAttempt() *model.Attempt {
	return &model.Attempt{
		Scope: model.Scope{Tenant: "acme", Workspace: "prod"}, TaskID: "task_1", RunID: "run_1", Number: 1, Fence: "f3nc",
		Timeout: 90 * time.Second, Interval: 30 * time.Second, IssuedAt: testTime,
	}
}

func TestMintingATaskTokenIsDeterministic(t *testing.T) {
	t.Parallel()
	k := testKeys(t)
	a := testAttempt()
	a.IssuedAt = testTime.Add(400 * time.Millisecond)
	one, exp, err := MintTask(k, a, time.Hour, true)
	two, _, _ := MintTask(k, a, time.Hour, true)
	if err != nil || one != two {
		t.Fatalf("two tokens for one attempt: %v", err)
	}
	if want := testTime.Add(time.Hour + time.Second); !exp.Equal(want) {
		t.Errorf("expires %v, want %v: never early, in whole seconds", exp, want)
	}
	c, err := k.Verify(one, testTime)
	if err != nil {
		t.Fatal(err)
	}
	if got := attemptOf(c); got != *a {
		t.Errorf("got %+v, want %+v", got, *a)
	}
	if c.ExpiresAt.Sub(c.IssuedAt.Time) != time.Hour {
		t.Errorf("life %v", c.ExpiresAt.Sub(c.IssuedAt.Time))
	}
}

// What others signed with our keys may have any subject; it must not reach events.
func TestSubjectsThatAreInvalidInEvents(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"", "a b", "role:admin", "a\nb", "-a", strings.Repeat("a", 129)} {
		c := &token.Claims{Kind: token.KindControl, Role: token.RoleOperator}
		c.Subject = subject
		if by := (&Principal{Claims: c}).actor(); by != "role:operator" {
			t.Errorf("%q acts as %q", subject, by)
		}
	}
	if err := (token.Control{Role: token.RoleOperator, Tenant: "a", Workspace: "b", Subject: "a b", TTL: time.Hour}).Check(); err == nil {
		t.Error("a token was issued for a subject that events cannot contain")
	}
}
