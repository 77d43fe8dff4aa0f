package main

import "github.com/alecthomas/kong"

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"Command to explain, such as 'config check'."`
}

// Run prints what --help prints.
func (c *helpCmd) Run(k *kong.Context) error {
	_, err := k.Kong.Parse(append(c.Command, "--help"))
	if err != nil {
		return &mistake{err}
	}
	return nil
}
