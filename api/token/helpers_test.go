package token

import (
	"strings"
	"testing"
	"time"
)

var testTime = time.Date(2025, 1, 15, 10, 5, 0, 0, time.UTC)

func testKeys(t testing.TB) *Keyring {
	t.Helper()
	k, err := NewKeyring(Key{ID: "k1", Secret: []byte(strings.Repeat("1", MinKeyBytes))})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func testClaims() *Claims {
	return &Claims{
		Kind: KindTask, Tenant: "acme", Workspace: "prod", Run: "run_1", Task: "task_1", Attempt: 1, Fence: "f3nc",
		TimeoutMs: 90_000, IntervalMs: 30_000, IssuedMs: testTime.UnixMilli(), LifeMs: time.Hour.Milliseconds(), Renew: true,
	}
}
