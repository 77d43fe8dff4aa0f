package judge

import (
	"fmt"
	"strconv"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Limits above which a Redis gets a warning.
const (
	oldestMajor  = 7
	roundTripMs  = 20
	clockAheadMs = 1000
	memoryShare  = 0.9
)

// embedded is the version that the Redis inside a Lubdub process reports.
const embedded = "embedded"

// redis evaluates one server by what it reports about itself.
func (v *verdict) redis(r *v1.SystemRedis) {
	name := "Redis"
	if r.Address != nil {
		name = "Redis " + *r.Address
	}
	switch {
	case r.Error != nil:
		v.fail("redis", name+" is not responding: "+*r.Error, "check that it runs and is reachable; its shards recover on their own")
		return
	case r.Version != nil && *r.Version == embedded:
		v.warn("redis", "Redis is embedded, for trying Lubdub only: nothing survives the process.", "use a real Redis with --redis")
		return
	}
	v.version(name, r)
	v.policy(name, r)
	v.memory(name, r)
	v.persistence(name, r)
	v.roundTrip(name, r)
	v.clock(name, r)
}

func (v *verdict) version(name string, r *v1.SystemRedis) {
	if r.Version == nil {
		v.warn("redis-version", name+" did not report its version.", "grant INFO to its user: deploy/redis/users.acl")
		return
	}
	number := strings.TrimPrefix(*r.Version, "valkey ") // its version numbers continue those of Redis 7.2
	major, _, _ := strings.Cut(number, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestMajor {
		v.warn("redis-version", name+" is version "+*r.Version+"; Lubdub is tested with 7 and later.", "upgrade it")
		return
	}
	v.ok("redis-version", name+" is version "+*r.Version+".")
}

func (v *verdict) policy(name string, r *v1.SystemRedis) {
	switch {
	case r.MaxMemoryPolicy == nil:
		v.warn("redis-policy", name+" did not report its maxmemory-policy.", "grant INFO to its user: deploy/redis/users.acl")
	case *r.MaxMemoryPolicy != "noeviction":
		v.fail("redis-policy", name+" may evict tasks: its maxmemory-policy is "+*r.MaxMemoryPolicy+".",
			"run redis-cli CONFIG SET maxmemory-policy noeviction, and set it in redis.conf")
	default:
		v.ok("redis-policy", name+" does not evict keys.")
	}
}

func (v *verdict) memory(name string, r *v1.SystemRedis) {
	used := fmt.Sprintf("%s uses %d MiB", name, r.MemoryBytes>>20)
	if r.MaxMemoryBytes == 0 {
		v.ok("redis-memory", used+", without a limit.")
		return
	}
	used += fmt.Sprintf(" of %d MiB.", r.MaxMemoryBytes>>20)
	if r.MemoryBytes >= r.MaxMemoryBytes {
		v.fail("redis-memory", used+" It is at its memory limit and rejects writes.",
			"raise maxmemory (lubdub plan estimates what a fleet needs), or lower finished-retention")
		return
	}
	if float64(r.MemoryBytes) > memoryShare*float64(r.MaxMemoryBytes) {
		v.warn("redis-memory", used, "raise maxmemory (lubdub plan estimates what a fleet needs), or lower finished-retention")
		return
	}
	v.ok("redis-memory", used)
}

func (v *verdict) persistence(name string, r *v1.SystemRedis) {
	switch {
	case r.AppendOnly:
		v.ok("redis-persistence", name+" has an append-only file.")
	case r.Replicas > 0:
		v.ok("redis-persistence", fmt.Sprintf("%s has %s, and no append-only file.", name, count(r.Replicas, "replica")))
	default:
		v.warn("redis-persistence",
			name+" has neither an append-only file nor a replica: a crash loses everything written since the last snapshot.",
			"run redis-cli CONFIG SET appendonly yes and set it in redis.conf, or add a replica")
	}
}

func (v *verdict) roundTrip(name string, r *v1.SystemRedis) {
	says := fmt.Sprintf("%s answers in %.1f ms.", name, r.RoundTripMs)
	if r.RoundTripMs > roundTripMs {
		v.warn("redis-round-trip", says, "move it closer; SLOWLOG GET and INFO commandstats show what keeps it busy")
		return
	}
	v.ok("redis-round-trip", says)
}

func (v *verdict) clock(name string, r *v1.SystemRedis) {
	says := fmt.Sprintf("%s is %+.0f ms ahead of %s.", name, r.ClockOffsetMs, v.where)
	if r.ClockOffsetMs > clockAheadMs || r.ClockOffsetMs < -clockAheadMs {
		v.warn("clock", says, "run NTP on both; deadlines use Redis's clock")
		return
	}
	v.ok("clock", says)
}
