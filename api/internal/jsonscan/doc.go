// Package jsonscan reads and writes JSON text without allocating: a scanner over a body, strings and times as bytes. It does not know the
// content; package api does.
//
// Ownership: its results point into the text that it was given.
package jsonscan
