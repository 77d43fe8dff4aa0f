// Package webhooks posts events to users' endpoints: it collects events into a queue for each webhook that subscribes to them, and posts
// them, signed, until they are received.
package webhooks
