// Package config combines flags, environment and a YAML file to the effective configuration of a process.
//
// The struct Config is the single source: its tags give every setting its name, default, bounds and meaning, and the command line,
// the LUBDUB_* variables, the file, `lubdub config print` and docs/configuration.md are all derived from them. The package knows which
// values are allowed, but not how they are used.
package config
