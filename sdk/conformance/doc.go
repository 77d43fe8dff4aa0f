// Package conformance holds every SDK against one table of cases, cases.json: it plays the server and instructs a small program of the SDK.
// README.md has the protocol. All of it is in tests.
package conformance
