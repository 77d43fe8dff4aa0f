// Package workers answers the routes of workers and machines.
package workers
