// Package lifecycle starts the services of a process, watches signals, and stops the services in order. It knows neither HTTP nor
// Redis.
package lifecycle
