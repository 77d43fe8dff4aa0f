// Package webhooks answers the routes of webhooks and their deliveries.
package webhooks
