// Package model holds the terms of the domain (tasks, attempts, workers, errors) and the rules that need no store. It is pure: it knows
// neither Redis nor any other package of tracker.
package model
