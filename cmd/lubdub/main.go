package main

import (
	"io"
	"os"
)

func main() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	os.Exit(a.run(os.Args[1:]))
}

// app is the environment of a command; tests replace it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string

	// Mistakes in the command line, which the configuration reports with its own.
	badFlags map[string]string // invalid values, by flag
	strays   []string          // unknown flags and excess arguments
	removed  []string          // settings that were removed and are given as flags
}

// Exit codes.
const (
	exitOK      = 0
	exitFailed  = 1 // an error while running
	exitMistake = 2 // the command line or the configuration is wrong; nothing was started
)
