// Package tasks is the life of a task apart from its beats: create, read, list, cancel, the next attempt, and runs.
package tasks
