// Package oidc accepts the tokens of an OpenID provider as control tokens. It verifies them with the provider's keys, which it fetches in
// the background, and maps their claims to a role, a scope and a name.
package oidc
