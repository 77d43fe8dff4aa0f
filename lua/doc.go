// Package lua has every Redis script of Lubdub, one .lua file per operation, in a folder for the package under tracker that runs
// it, and composes them with the fragments in lib/ that several scripts share. It knows only the sources and their SHA-1: the
// header of each script documents the arguments, and the package under tracker passes them. Scripts are named after their files,
// across all folders.
package lua
