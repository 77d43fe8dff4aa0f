package token

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Which tokens are revoked, and which are not.
func TestRevokedReports(t *testing.T) {
	t.Parallel()
	at := func(s int64) *jwt.NumericDate { return jwt.NewNumericDate(time.Unix(s, 0)) }
	of := func(kind Kind, tenant, workspace, worker, subject string, issued int64) *Claims {
		return &Claims{Kind: kind, Tenant: tenant, Workspace: workspace, Worker: worker,
			RegisteredClaims: jwt.RegisteredClaims{Subject: subject, IssuedAt: at(issued)}}
	}
	r := NewRevoked()
	r.Tenant("gone", time.Unix(100, 0))
	r.Worker("acme", "prod", "wkr_1", time.Unix(100, 0))
	r.Subject("acme", "prod", "ann", time.Unix(50, 0))
	r.Subject("acme", "prod", "ann", time.Unix(100, 0))
	r.Subject("acme", "prod", "ann", time.Unix(60, 0)) // the latest applies
	r.Subject("acme", Wildcard, "bob", time.Unix(100, 0))
	r.Subject(Wildcard, Wildcard, "eve", time.Unix(100, 0))
	for _, c := range []*Claims{
		of(KindTask, "gone", "w", "", "", 100), of(KindWorker, "gone", "w", "wkr_9", "", 1),
		of(KindControl, "gone", "*", "", "", 1),
		of(KindWorker, "acme", "prod", "wkr_1", "", 100), of(KindTask, "acme", "prod", "wkr_1", "", 99),
		of(KindControl, "acme", "prod", "", "ann", 100), of(KindControl, "acme", "dev", "", "bob", 100),
		of(KindControl, "acme", "*", "", "bob", 1),
		of(KindControl, "acme", "prod", "", "eve", 1), of(KindControl, "*", "*", "", "eve", 1),
	} {
		if !r.Revokes(c) || !r.MayRevoke(c) {
			t.Errorf("%+v holds", c)
		}
	}
	for _, c := range []*Claims{
		of(KindTask, "gone", "w", "", "", 101), of(KindControl, "*", "*", "", "", 1), of(KindTask, "acme", "prod", "", "", 1),
		of(KindWorker, "acme", "prod", "wkr_1", "", 101), of(KindWorker, "acme", "dev", "wkr_1", "", 1),
		of(KindWorker, "acme", "prod", "wkr_2", "", 1),
		of(KindControl, "acme", "prod", "", "ann", 101), of(KindControl, "acme", "dev", "", "ann", 1), of(KindControl, "acme", "*", "", "ann", 1),
		of(KindControl, "*", "*", "", "bob", 1), of(KindControl, "acme", "prod", "", "", 1), of(KindTask, "acme", "prod", "", "ann", 1),
	} {
		if r.Revokes(c) {
			t.Errorf("%+v does not hold", c)
		}
	}
	if !r.MayRevoke(of(KindTask, "gone", "w", "", "", 101)) {
		t.Error("a token without a known time of issue is valid")
	}
}

// A revocation is kept for the longest lifetime of a token, so no token may be valid for longer, whatever it claims.
func TestNoTokenHoldsLongerThanItsKindMay(t *testing.T) {
	t.Parallel()
	k := testKeys(t)
	for kind, longest := range map[Kind]time.Duration{KindTask: MaxLife, KindWorker: MaxLife, KindControl: MaxControlLife} {
		c := testClaims()
		c.Kind = kind
		text, err := k.sign(c, testTime, testTime.Add(10*longest))
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Verify(text, testTime.Add(longest-time.Second))
		if err != nil || !got.ExpiresAt.Equal(testTime.Add(longest)) {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
		if _, err := k.Verify(text, testTime.Add(longest)); err == nil {
			t.Errorf("a token of the kind %s holds after %v", kind, longest)
		}
	}
	undated := &Claims{Kind: KindControl, Role: RoleAdmin, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: issuer, Audience: jwt.ClaimStrings{audience}, ExpiresAt: jwt.NewNumericDate(testTime.Add(time.Hour))}}
	signed := jwt.NewWithClaims(jwt.SigningMethodHS256, undated)
	signed.Header["kid"] = k.first.ID
	text, err := signed.SignedString(k.first.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Verify(text, testTime); err == nil {
		t.Error("a token without a time of issue is valid")
	}
	if err := (Control{Role: RoleViewer, Tenant: "a", Workspace: "b", TTL: MaxControlLife + time.Second}).Check(); err == nil {
		t.Error("a token was issued for longer than it would be valid")
	}
}

// A token that is dropped is not found any more, and its place is free; the others stay.
func TestCacheDrops(t *testing.T) {
	t.Parallel()
	const n = 20
	now := testTime.UnixMilli()
	c, tokens := NewCache(1024, ownerOf), make([]*Entry[string], n)
	for i := range n {
		tokens[i] = cached(t, testKeys(t), string(rune('a'+i)), time.Hour)
		c.Put(tokens[i], now)
	}
	revoked := func(id string) bool { return id[0]%2 == 0 }
	if dropped := c.Drop(func(id *string) bool { return revoked(*id) }); dropped != n/2 || c.Len() != n/2 {
		t.Errorf("dropped %d, %d are left", dropped, c.Len())
	}
	for _, e := range tokens {
		if found := c.Get([]byte(e.Token), now) != nil; found == revoked(e.Value) {
			t.Errorf("%s is found: %v", e.Value, found)
		}
	}
	c.Put(tokens[1], now)
	if c.Get([]byte(tokens[1].Token), now) == nil || c.Len() != n/2+1 || c.Evictions() != 0 {
		t.Error("a token that was dropped cannot come back")
	}
}
