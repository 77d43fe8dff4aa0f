// Package lifecycle is how a process of several services starts, learns that it should stop, and stops in order.
// It knows neither HTTP nor Redis.
package lifecycle
