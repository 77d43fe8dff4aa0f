// Package tasks manages tasks apart from their heartbeats: create, read, list, cancel, the next attempt, and runs.
package tasks
