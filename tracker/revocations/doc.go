// Package revocations knows which tokens were taken back. The list lies in Redis; each replica keeps a copy of it, so that to
// judge a token asks nobody.
package revocations
