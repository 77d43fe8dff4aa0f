// Package tracker opens the domain: Open connects to Redis and makes the services, each of a room of its own, from those below it that
// it needs. A Tracker is these services by name.
package tracker
