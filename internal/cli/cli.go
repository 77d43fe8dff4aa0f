package cli

import (
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lubdub-io/lubdub/internal/cli/completion"
	"github.com/lubdub-io/lubdub/internal/cli/exit"
	"github.com/lubdub-io/lubdub/internal/cli/session"
)

// Has reports whether a command is one of these.
func Has(command *kong.Node) bool {
	if command == nil {
		return false
	}
	switch command.Target.Addr().Interface().(type) {
	case interface{ Run(*session.Env) error }, interface {
		Run(*session.Env, *kong.Context) error
	}:
		return true
	}
	return false
}

// EmptyFlags refuses flags that were given without a value, as by a variable that is not set: left out, they would choose more.
func EmptyFlags(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Tag.Type == "" && p.Flag.Target.Kind() == reflect.String && p.Flag.Target.Len() == 0 {
			return exit.Misusef("--%s is empty; give it a value, or omit it", p.Flag.Name)
		}
	}
	return nil
}

// Complete prints how the line of a shell that asks may continue; false: no shell asks.
func Complete(env *session.Env, parser *kong.Kong) bool {
	return completion.Complete(env, parser, idLists)
}

// FlagsBehind moves the flags of every command from before the command, where kubectl takes them, to its end.
func FlagsBehind(args []string) []string {
	n := 0
	for n < len(args) {
		name, _, whole := strings.Cut(args[n], "=")
		if !isCommonFlag(name) {
			break
		}
		if n++; !whole {
			n++ // its value
		}
	}
	if n >= len(args) {
		return args
	}
	flags, rest := args[:n], args[n:]
	end := slices.Index(rest, "--")
	if end < 0 {
		end = len(rest)
	}
	return slices.Concat(rest[:end], flags, rest[end:])
}

func isCommonFlag(flag string) bool {
	for field := range reflect.TypeFor[session.Flags]().Fields() {
		short := field.Tag.Get("short")
		if flag == "--"+strings.ToLower(field.Name) || short != "" && flag == "-"+short {
			return true
		}
	}
	return false
}
