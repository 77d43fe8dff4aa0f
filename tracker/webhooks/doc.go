// Package webhooks tells others what happens: it takes events into a queue for each webhook that asks for them, and posts them
// there, signed, until they are received.
package webhooks
