package main

import (
	"io"
	"os"
)

func main() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	os.Exit(a.run(os.Args[1:]))
}

// app is what a command sees of the outside world.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string

	// What is wrong with the command line, for the configuration to tell with its other mistakes.
	badFlags map[string]string // values that cannot be read, by flag
	strays   []string          // flags that do not exist, arguments that no command takes
	removed  []string          // settings that were removed and are given as flags
}

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // something went wrong while running
	exitMistake = 2 // the command line or the configuration is wrong; nothing was begun
)
