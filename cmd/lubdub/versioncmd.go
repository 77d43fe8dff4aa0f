package main

import (
	"fmt"
	"runtime"
)

type versionCmd struct{}

func (*versionCmd) Run(a *app) error {
	_, err := fmt.Fprintf(a.stdout, "lubdub %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
