package main

import (
	"fmt"
	"runtime"
)

type versionCmd struct{}

func (*versionCmd) Run(a *app) error {
	_, err := fmt.Fprintln(a.stdout, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("lubdub %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
