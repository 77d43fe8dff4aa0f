// Package queues answers the routes of queues, and claims.
package queues
