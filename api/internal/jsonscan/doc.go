// Package jsonscan reads and writes JSON text without allocating: a scanner over a body, strings and times as bytes. It
// knows nothing of what is said in JSON; that is package api's.
//
// Ownership: what it gives out borrows the text that it was given.
package jsonscan
