package main

import "errors"

// benchCmd is kept for one release.
type benchCmd struct {
	Args []string `arg:"" optional:""`
}

func (*benchCmd) Run() error {
	return &mistake{errors.New("the benchmark is a separate program: build it with 'make build-bench' and run bin/lubdub-bench")}
}
