// Package sweep enforces deadlines: it declares silent attempts and workers dead, enforces timeouts, ends drains, recovers the
// attempts of ended workers and places their tasks again.
package sweep
