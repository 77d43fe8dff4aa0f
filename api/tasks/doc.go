// Package tasks answers the routes of tasks, attempts and runs.
package tasks
