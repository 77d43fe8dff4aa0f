// Package tasks is the life of a task but for its beats: create, read, list, cancel, the next attempt, and runs.
package tasks
