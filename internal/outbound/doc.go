// Package outbound posts webhooks to URLs that users have chosen. Each URL is checked twice: when it is saved, and when it is dialled, by
// the address that its name resolves to.
package outbound
