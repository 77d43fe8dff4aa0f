// Package tracker opens the domain: Open connects to Redis and creates the services, each in its own package, from those below it that it
// needs. A Tracker has these services by name.
package tracker
