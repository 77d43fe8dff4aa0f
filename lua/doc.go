// Package lua holds every Redis script of Lubdub, one .lua file per operation, in the folder of the room of package
// tracker that runs it, and composes them with the fragments in lib/ that several operations share. It knows the texts
// and their SHA-1 and nothing else: what the arguments mean stands in each script's header, who passes them in package
// tracker. Names are those of the files, over all rooms.
package lua
