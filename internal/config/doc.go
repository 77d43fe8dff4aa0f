// Package config turns flags, environment and a YAML file into the one effective configuration of a process.
//
// The struct Config is the single source: its tags give every setting its name, default, bounds and meaning, and
// the command line, the LUBDUB_* variables, the file, `lubdub config print` and docs/configuration.md are all
// made from them. It knows what values are allowed, and nothing of what they are used for.
package config
