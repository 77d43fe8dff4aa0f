//go:build !unix

package main

// openFiles is not limited here.
func openFiles() (n int, known bool) { return 0, false }
