// Package outbound posts webhooks to URLs that users have chosen. So where each leads is judged twice: when it is saved, and
// when it is dialled, by the address that its name has become.
package outbound
