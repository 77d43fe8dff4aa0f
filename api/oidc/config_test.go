package oidc_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lubdub-io/lubdub/api/oidc"
	"github.com/lubdub-io/lubdub/api/token"
)

func TestMistakesInTheFile(t *testing.T) {
	t.Parallel()
	const good = "issuer: https://id.example.com\nclientId: lubdub\n"
	for text, want := range map[string]string{
		good + "grants: [{role: viewer, tenant: a, workspace: b}]":                                                "",
		good + `grants: [{claim: a.b, value: c, role: enroll, tenant: "claim:org", workspace: "*", queue: mail}]`: "",
		"issuer: http://127.0.0.1:5556\nclientId: x\ngrants: [{role: viewer, tenant: a, workspace: b}]":           "",
		"clientId: lubdub\ngrants: [{role: viewer, tenant: a, workspace: b}]":                                     "issuer",
		"issuer: http://id.example.com\nclientId: lubdub\ngrants: [{role: viewer, tenant: a, workspace: b}]":      "https://",
		"issuer: https://id.example.com\ngrants: [{role: viewer, tenant: a, workspace: b}]":                       "clientId is missing",
		good: "grants is missing",
		"":   "it is empty",
		good + "idleTimeout: 30m\ngrants: [{role: viewer, tenant: a, workspace: b}]":                         "",
		good + "idleTimeout: 30s\ngrants: [{role: viewer, tenant: a, workspace: b}]":                         "a minute or more",
		good + "scopes: [email]\ngrants: [{role: viewer, tenant: a, workspace: b}]":                          "openid",
		good + "grants: [{role: owner, tenant: a, workspace: b}]":                                            `grants[0]: unknown role "owner"`,
		good + "grants: [{role: viewer, workspace: b}]":                                                      `grants[0]: the tenant ""`,
		good + `grants: [{role: viewer, tenant: a, workspace: "claim:"}]`:                                    `grants[0]: the workspace "claim:"`,
		good + "grants: [{claim: groups, role: viewer, tenant: a, workspace: b}]":                            "claim and value go together",
		good + "grants: [{role: viewer, tenant: a, workspace: b, queue: mail}]":                              "queue",
		good + "grant: [{role: viewer, tenant: a, workspace: b}]":                                            "grant",
		good + "grants: [{role: viewer, tenant: a, workspace: b}, {role: admin, tenant: a b, workspace: b}]": "grants[1]",
	} {
		_, err := oidc.Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// operatorOf returns the claims of an operator of a tenant.
func operatorOf(tenant any) map[string]any {
	return map[string]any{"realm_access": map[string]any{"roles": []string{"operator"}}, "org": map[string]any{"id": tenant}}
}

func TestWhatTokensAllow(t *testing.T) {
	t.Parallel()
	const file = `
issuer: https://id.example.com
clientId: lubdub
subjectClaim: SUBJECT
grants:
  - {claim: groups, value: platform, role: admin, tenant: "*", workspace: "*"}
  - {claim: realm_access.roles, value: operator, role: operator, tenant: "claim:org.id", workspace: prod}
  - {claim: "https://example.com/role", value: ci, role: enroll, tenant: acme, workspace: prod, queue: mail}
  - {claim: email, value: boss@example.com, role: admin, tenant: "*", workspace: "*"}
  - {claim: contractor, value: "false", role: viewer, tenant: acme, workspace: "*"}
`
	for name, c := range map[string]struct {
		subject string
		claims  map[string]any
		want    string // role tenant workspace queue subject; empty: refused
	}{
		"a list":                    {"", map[string]any{"groups": []string{"x", "platform"}}, "admin * *  ann@example.com"},
		"one value":                 {"", map[string]any{"groups": "platform"}, "admin * *  ann@example.com"},
		"the first grant":           {"", map[string]any{"contractor": false, "groups": "platform"}, "admin * *  ann@example.com"},
		"a part of a value":         {"", map[string]any{"groups": "platforms"}, ""},
		"nested":                    {"", operatorOf("a"), "operator a prod  ann@example.com"},
		"every tenant by a claim":   {"", operatorOf("*"), ""},
		"a bad tenant":              {"", operatorOf("a b"), ""},
		"no tenant":                 {"", operatorOf(nil), ""},
		"a name with dots":          {"", map[string]any{"https://example.com/role": "ci"}, "enroll acme prod mail ann@example.com"},
		"a boolean":                 {"", map[string]any{"contractor": false}, "viewer acme *  ann@example.com"},
		"nothing":                   {"", nil, ""},
		"another subject":           {"sub", map[string]any{"groups": "platform"}, "admin * *  17"},
		"an invalid subject":        {"sub", map[string]any{"groups": "platform", "sub": "role:admin"}, ""},
		"no subject":                {"", map[string]any{"groups": "platform", "email": nil}, ""},
		"an unverified address":     {"", map[string]any{"groups": "platform", "email_verified": false}, ""},
		"a verified address":        {"", map[string]any{"groups": "platform", "email_verified": true}, "admin * *  ann@example.com"},
		"an unverified, unused one": {"sub", map[string]any{"groups": "platform", "email_verified": false}, "admin * *  17"},
		"unverified, as a string":   {"", map[string]any{"groups": "platform", "email_verified": "false"}, ""},
		"verified, as a string":     {"", map[string]any{"groups": "platform", "email_verified": "true"}, "admin * *  ann@example.com"},
		"a role by an address":      {"sub", map[string]any{"email": "boss@example.com"}, "admin * *  17"},
		"by an unverified address":  {"sub", map[string]any{"email": "boss@example.com", "email_verified": 0}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			key := rsaKey(t)
			s.keys["k"] = key
			cfg, err := oidc.Parse([]byte(strings.Replace(file, "SUBJECT", `"`+c.subject+`"`, 1)))
			if err != nil {
				t.Fatal(err)
			}
			p := oidc.NewProvider(cfg, s, quiet)
			run(t, p)
			got, err := p.Verify(s.sign(jwt.SigningMethodRS256, "k", key, claims(c.claims)), time.Now())
			if c.want == "" {
				if !errors.As(err, new(*oidc.Refused)) {
					t.Errorf("%s: %v %+v", name, err, got)
				}
				return
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if is := strings.Join([]string{string(got.Role), got.Tenant, got.Workspace, got.Queue, got.Subject}, " "); is != c.want ||
				got.Kind != token.KindControl {
				t.Errorf("%s: %s", name, is)
			}
		})
	}
}
