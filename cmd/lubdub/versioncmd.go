package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// release is the current or next version: the newest heading of CHANGELOG.md.
const release = "0.1.0"

// version, commit and the commit's date, in RFC 3339, as set by -ldflags '-X main.version=…'. Empty values come from release and from
// the build information of the go command.
var version, commit, date string

func init() {
	info, _ := debug.ReadBuildInfo()
	built := noted(info)
	version, commit, date = cmp.Or(version, release), cmp.Or(commit, built.commit), cmp.Or(date, built.date)
}

// source is the commit that a program was built from. Its fields are empty if unknown.
type source struct{ commit, date string }

// noted returns the build information of the go command. A tree with uncommitted changes is shown as 1a2b3c4-dirty.
func noted(info *debug.BuildInfo) (s source) {
	if info == nil {
		return s
	}
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			s.commit = setting.Value[:min(7, len(setting.Value))] + s.commit
		case setting.Key == "vcs.time":
			s.date = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			s.commit += "-dirty"
		}
	}
	return s
}

type versionCmd struct{}

func (*versionCmd) Run(a *app) error {
	_, err := fmt.Fprintln(a.stdout, versionLine())
	return err
}

func versionLine() string {
	about := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if date != "" {
		about = append([]string{date}, about...)
	}
	if commit != "" {
		about = append([]string{"commit " + commit}, about...)
	}
	return fmt.Sprintf("lubdub %s (%s)", version, strings.Join(about, ", "))
}
