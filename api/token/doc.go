// Package token creates and verifies bearer tokens: signing keys, the content of a token (Claims), minting, verification, and a cache of
// verified tokens. It knows neither HTTP nor the domain: package api decides which token a route requires, and what a task's claims
// mean.
package token
