package lua

import (
	"cmp"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed */*.lua
var files embed.FS

// fragments is the folder of shared code; every other folder has the scripts that one package runs.
const fragments = "lib"

// Script is one operation: a whole .lua file with its fragments inserted.
type Script struct {
	Name   string // the file's name without .lua, e.g. "beat"
	Source string // what EVAL and SCRIPT LOAD get
	SHA    string // lower-case hex SHA-1 of Source, what EVALSHA gets
	Events bool   // it writes events: its last argument, after those in its header, is the actor
}

// Set is all scripts by name.
type Set struct {
	byName map[string]*Script
	names  []string // sorted
}

// redisClock is how every script reads the wall time; it occurs once, in lib/clock.lua.
const redisClock = "redis.call('TIME')"

// Load composes the scripts for production, with Redis's own clock.
func Load() *Set { return withClock(embedded(), redisClock) }

// LoadWithClock composes the scripts with another source of wall time: a Lua expression that returns {seconds, microseconds} as
// TIME does. It is for tests, which step and freeze the clock; a test over the import graph ensures that only internal/redistest
// calls it.
func LoadWithClock(expr string) *Set { return withClock(embedded(), expr) }

// LoadWithClockFrom composes the scripts of another folder, so that tests can check whether they would detect wrong ones. With an
// empty expression the clock is Redis's own.
func LoadWithClockFrom(folder fs.FS, expr string) *Set {
	return withClock(compose(folder), cmp.Or(expr, redisClock))
}

// Get returns the named script; a name that does not exist is a programming error and panics.
func (s *Set) Get(name string) *Script {
	sc, ok := s.byName[name]
	if !ok {
		panic(fmt.Sprintf("lua: no script named %q", name))
	}
	return sc
}

// wakeChannel and eventsKept are what differs between deployments. They occur once in the scripts, in lib/wake.lua and
// lib/event.lua, and For replaces them.
const wakeChannel = "'lubdub:wake'" // where they say what wakes claims that wait

// eventsMost is the approximate maximum of events in a shard's stream that is to keep this many: sweepers trim it to these, and
// leave what webhooks have not taken yet.
func eventsMost(perShard int) string { return fmt.Sprintf("EVENTS_MOST = '%d'", 4*perShard) }

// leastEventsPerShard is the value in the source of the scripts, and what a shard keeps when there are many.
const leastEventsPerShard = 10000

// DefaultEventsPerShard is how many events each shard keeps by default: with few shards, as many as 16 would keep together.
func DefaultEventsPerShard(shards int) int { return leastEventsPerShard * max(1, 16/shards) }

// Deployment is what its scripts know about it.
type Deployment struct {
	Database       int // of Redis, which it uses
	EventsPerShard int // approximate number of events that a shard's stream keeps, while sweepers keep up; 0: 10,000
}

// WakeChannel is the name of the channel for a database: Redis shares channels between all of them.
func WakeChannel(database int) string {
	if database == 0 {
		return strings.Trim(wakeChannel, "'")
	}
	return fmt.Sprintf("%s:%d", strings.Trim(wakeChannel, "'"), database)
}

// For returns the scripts for a deployment.
func (s *Set) For(d Deployment) *Set {
	channel, events := "'"+WakeChannel(d.Database)+"'", eventsMost(cmp.Or(d.EventsPerShard, leastEventsPerShard))
	set := &Set{byName: make(map[string]*Script, len(s.byName)), names: s.names}
	for name, script := range s.byName {
		// a strings.Replacer would not search, but look at each byte
		src := strings.ReplaceAll(script.Source, wakeChannel, channel)
		src = strings.ReplaceAll(src, eventsMost(leastEventsPerShard), events)
		if src != script.Source {
			script = newScript(name, src)
		}
		set.byName[name] = script
	}
	return set
}

// takesActor is how lib/event.lua reads the actor.
const takesActor = "actor = table.remove(ARGV)"

func newScript(name, src string) *Script {
	sum := sha1.Sum([]byte(src))
	return &Script{Name: name, Source: src, SHA: hex.EncodeToString(sum[:]), Events: strings.Contains(src, takesActor)}
}

// Names lists the scripts, sorted.
func (s *Set) Names() []string { return s.names }

// embedded are the sources of all scripts, by name. Composing them takes some tens of milliseconds, so it is done once.
var embedded = sync.OnceValue(func() map[string]string { return compose(files) })

// compose returns the sources of a folder's scripts, by name.
func compose(folder fs.FS) map[string]string {
	sources, read := map[string]string{}, reader{folder, map[string][]piece{}}
	files, err := fs.Glob(folder, "*/*.lua")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, file := range files {
		dir, base := path.Split(file)
		if path.Clean(dir) == fragments {
			continue
		}
		name := strings.TrimSuffix(base, ".lua")
		if sources[name] != "" {
			panic(fmt.Sprintf("lua: two rooms have a script named %q", name))
		}
		parts := read.script(file)
		all := usesIn(parts)
		parts = withoutUnused(parts, all)
		if twice := declaredTwice(parts); twice != "" {
			panic(fmt.Sprintf("lua: %s declares %s twice at its top level", file, twice))
		}
		sources[name] = source(nested(withConstants(parts), all))
	}
	return sources
}

// withClock creates scripts from sources.
func withClock(sources map[string]string, clock string) *Set {
	set := &Set{byName: map[string]*Script{}, names: slices.Sorted(maps.Keys(sources))}
	for name, src := range sources {
		set.byName[name] = newScript(name, strings.ReplaceAll(src, redisClock, clock))
	}
	return set
}
