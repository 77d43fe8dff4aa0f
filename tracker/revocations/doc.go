// Package revocations knows which tokens were revoked. The list is stored in Redis; each replica keeps a copy of it, so that checking a
// token needs no request.
package revocations
