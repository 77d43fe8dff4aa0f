// Package lua holds every Redis script of Lubdub, one .lua file per operation, and composes them with the
// fragments in lib/ that several operations share. It knows the texts and their SHA-1 and nothing else: what
// the arguments mean stands in each script's header, who passes them in package tracker.
package lua
