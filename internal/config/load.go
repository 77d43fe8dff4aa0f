package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Layer is a kind of source of values. A later one takes precedence.
type Layer int

const (
	FromDefault Layer = iota
	FromFile
	Environment
	FromFlag
)

// Source says where a value came from.
type Source struct {
	Layer Layer
	Where string // LUBDUB_LISTEN, lubdub.yaml:3, --listen
}

func (s Source) String() string {
	switch s.Layer {
	case FromFile:
		return "file " + s.Where
	case Environment:
		return "environment " + s.Where
	case FromFlag:
		return "flag " + s.Where
	default:
		return "default"
	}
}

// Input is the sources that Load reads.
type Input struct {
	File     string            // the YAML file; empty: the one in LUBDUB_CONFIG, else none
	Environ  []string          // as from os.Environ
	Flags    *Config           // values of the flags
	FlagsSet []string          // names of the flags that were given; the others in Flags are ignored
	BadFlags map[string]string // errors of flags whose values could not be parsed, by name
	Problems []string          // other mistakes, which are reported together with those that Load finds
	Defaults map[string]string // defaults that replace Config's, by name
}

// Loaded is a configuration with the source of each value.
type Loaded struct {
	Config
	File    string // the file that was read; empty: none
	sources map[string]Source
}

// Source returns where the value of a setting came from.
func (l *Loaded) Source(name string) Source { return l.sources[name] }

// Load applies flags over environment over file over defaults, and checks the result. The error reports all problems, one per line; it
// never contains a secret. With an error, Load also returns the valid part of the configuration, so that more of it can be checked; it
// must not be used for anything else.
func Load(in Input) (*Loaded, error) {
	l := &Loaded{Config: *Default(), sources: map[string]Source{}}
	ps := problems(slices.Clone(in.Problems))
	for name, text := range in.Defaults {
		f, ok := Lookup(name)
		if !ok {
			panic("config: default for an unknown setting: " + name)
		}
		l.apply(f, text, Source{}, &ps)
	}
	l.File = in.File
	if l.File == "" {
		l.File = lookupEnv(in.Environ, EnvConfig)
	}
	if l.File != "" {
		text, err := os.ReadFile(l.File)
		if err != nil {
			ps.addf("configuration file: %v", err)
		} else {
			ps = append(ps, l.applyYAML(l.File, text)...)
		}
	}
	ps = append(ps, l.applyEnviron(in.Environ)...)
	for _, name := range in.FlagsSet {
		if bad := in.BadFlags[name]; bad != "" {
			ps.addf("%s (flag --%s): %s", name, name, bad)
			continue
		}
		f, ok := Lookup(name)
		if !ok && !IsRemoved(name) {
			continue // a flag of the command itself
		}
		if ok {
			f.copy(&l.Config, in.Flags)
		}
		l.sources[name] = Source{Layer: FromFlag, Where: "--" + name}
	}
	ps = append(ps, l.validate()...)
	if len(ps) > 0 {
		return l, ps
	}
	return l, nil
}

// apply parses a value into its field and records its source.
func (l *Loaded) apply(f Field, text string, from Source, ps *problems) {
	if err := f.set(&l.Config, text); err != nil {
		ps.addf("%s (%s): %s", f.Name, from, f.redactIn(err.Error(), text))
		return
	}
	l.sources[f.Name] = from
}

// problems are the mistakes found in a configuration.
type problems []string

func (p problems) Error() string { return strings.Join(p, "\n") }

func (p *problems) addf(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// Problems lists the mistakes in an error of Load, and in errors that were joined with it.
func Problems(err error) (all []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			all = append(all, Problems(one)...)
		}
		return all
	}
	if p, ok := errors.AsType[problems](err); ok {
		return slices.Clone(p)
	}
	return []string{err.Error()}
}
