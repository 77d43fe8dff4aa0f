// Package faultproxy stands between a client and a server of a test (Redis, a replica) and misbehaves on demand: it
// stands still, is slow, cuts connections, and loses requests or their replies. It knows only bytes and connections.
package faultproxy
