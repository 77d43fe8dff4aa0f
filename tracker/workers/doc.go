// Package workers is the registry of workers and machines: registration, heartbeats, drains and ends. Selection and placement
// choose workers by what they can run and by their load.
package workers
