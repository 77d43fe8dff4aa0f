package config

import (
	"errors"
	"fmt"
	"strings"
)

// Roles are the roles of a process. The zero value does nothing and is refused.
type Roles struct {
	API     bool // serves HTTP, and keeps shard time running
	Sweeper bool // finds zombies and due timers
}

// String returns the roles, separated by commas.
func (r Roles) String() string {
	var names []string
	if r.API {
		names = append(names, "api")
	}
	if r.Sweeper {
		names = append(names, "sweeper")
	}
	return strings.Join(names, ",")
}

// UnmarshalText parses roles separated by commas.
func (r *Roles) UnmarshalText(text []byte) error {
	var got Roles
	for name := range strings.SplitSeq(string(text), ",") {
		switch strings.TrimSpace(name) {
		case "api":
			got.API = true
		case "sweeper":
			got.Sweeper = true
		case "":
		default:
			return fmt.Errorf("there is no role %q; the roles are api and sweeper", strings.TrimSpace(name))
		}
	}
	if got == (Roles{}) {
		return errors.New("no role is named; the roles are api and sweeper")
	}
	*r = got
	return nil
}
