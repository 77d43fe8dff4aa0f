// Package faultproxy is a proxy between a client and a server of a test (Redis, a replica) that misbehaves on demand: it pauses, delays,
// cuts connections, and loses requests or their replies. It knows only bytes and connections.
package faultproxy
