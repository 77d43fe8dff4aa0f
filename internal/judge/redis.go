package judge

import (
	"fmt"
	"strconv"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Where doubts about a Redis begin.
const (
	oldestMajor  = 7
	roundTripMs  = 20
	clockAheadMs = 1000
	memoryShare  = 0.9
)

// embedded is what the one inside a Lubdub process calls its version.
const embedded = "embedded"

// redis judges one server by what it says of itself.
func redis(r *v1.SystemRedis) []Finding {
	name := "Redis"
	if r.Address != nil {
		name = "Redis " + *r.Address
	}
	if r.Error != nil {
		return []Finding{{"redis", Fail, name + " does not answer: " + *r.Error,
			"see that it runs and can be reached; its shards go on by themselves when it is back"}}
	}
	if r.Version != nil && *r.Version == embedded {
		return []Finding{{"redis", Warn, "Redis is embedded: for trying only. Nothing outlives the process.", "name a real one with --redis"}}
	}
	return []Finding{version(name, r), policy(name, r), memory(name, r), persistence(name, r), roundTrip(name, r), clock(name, r)}
}

func version(name string, r *v1.SystemRedis) Finding {
	if r.Version == nil {
		return Finding{"redis-version", Warn, name + " does not tell its version.", "allow INFO to its user: deploy/redis/users.acl"}
	}
	major, _, _ := strings.Cut(*r.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestMajor {
		return Finding{"redis-version", Warn, name + " is version " + *r.Version + "; Lubdub is tested on 7 and later.", "upgrade it"}
	}
	return Finding{"redis-version", OK, name + " is version " + *r.Version + ".", ""}
}

func policy(name string, r *v1.SystemRedis) Finding {
	switch {
	case r.MaxMemoryPolicy == nil:
		return Finding{"redis-policy", Warn, name + " does not tell its maxmemory-policy.", "allow INFO to its user: deploy/redis/users.acl"}
	case *r.MaxMemoryPolicy != "noeviction":
		return Finding{"redis-policy", Fail, name + " may throw tasks away: its maxmemory-policy is " + *r.MaxMemoryPolicy + ".",
			"redis-cli CONFIG SET maxmemory-policy noeviction, and in its file"}
	}
	return Finding{"redis-policy", OK, name + " evicts nothing.", ""}
}

func memory(name string, r *v1.SystemRedis) Finding {
	used := fmt.Sprintf("%s uses %d MiB", name, r.MemoryBytes>>20)
	if r.MaxMemoryBytes == 0 {
		return Finding{"redis-memory", OK, used + ", and may use all that there is.", ""}
	}
	used += fmt.Sprintf(" of %d.", r.MaxMemoryBytes>>20)
	if float64(r.MemoryBytes) > memoryShare*float64(r.MaxMemoryBytes) {
		return Finding{"redis-memory", Warn, used, "raise maxmemory (lubdub plan says what a fleet takes), or lower finished-retention"}
	}
	return Finding{"redis-memory", OK, used, ""}
}

func persistence(name string, r *v1.SystemRedis) Finding {
	switch {
	case r.AppendOnly:
		return Finding{"redis-persistence", OK, name + " keeps an append-only file.", ""}
	case r.Replicas > 0:
		return Finding{"redis-persistence", OK, fmt.Sprintf("%s has %s, and no append-only file.", name, count(r.Replicas, "replica")), ""}
	}
	return Finding{"redis-persistence", Warn, name + " has neither an append-only file nor a replica: a crash loses what was since its last " +
		"snapshot.", "redis-cli CONFIG SET appendonly yes, and in its file; or give it a replica"}
}

func roundTrip(name string, r *v1.SystemRedis) Finding {
	says := fmt.Sprintf("%s answers in %.1f ms.", name, r.RoundTripMs)
	if r.RoundTripMs > roundTripMs {
		return Finding{"redis-round-trip", Warn, says, "put it nearer; SLOWLOG GET and INFO commandstats tell who keeps it busy"}
	}
	return Finding{"redis-round-trip", OK, says, ""}
}

func clock(name string, r *v1.SystemRedis) Finding {
	says := fmt.Sprintf("%s is %+.0f ms ahead of the replica that answers.", name, r.ClockOffsetMs)
	if r.ClockOffsetMs > clockAheadMs || r.ClockOffsetMs < -clockAheadMs {
		return Finding{"clock", Warn, says, "run NTP on both; deadlines go by Redis's clock"}
	}
	return Finding{"clock", OK, says, ""}
}
