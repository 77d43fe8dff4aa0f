package judge

import (
	"fmt"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Store is the result of checking a Redis before a server runs with it. An error is why a step failed; empty: it succeeded.
type Store struct {
	Redis                []v1.SystemRedis
	Denied               []string // commands that its user needs and is not allowed
	DeniedError          string
	Scripts              int // that were loaded
	ScriptsError         string
	DurabilityError      string
	Shards, WantedShards int // 0: no deployment has started there; 0: any number
	StoredError          string
	Replicas             int      // that run there
	Differing            []string // settings that differ between these and this host
}

const aclRemedy = "grant its user the permissions in deploy/redis/users.acl"

// OfStore evaluates a Redis itself.
func OfStore(s Store) []v1.Finding {
	v := verdict{about: v1.Us, where: "this host"}
	for i := range s.Redis {
		v.redis(&s.Redis[i])
	}
	switch {
	case s.DeniedError != "":
		v.warn("acl", "The permissions of its user cannot be read: "+s.DeniedError, aclRemedy)
	case len(s.Denied) > 0:
		v.fail("acl", "Its user may not run "+strings.Join(s.Denied, ", ")+" on Lubdub's keys.", aclRemedy)
	default:
		v.ok("acl", "Its user has all permissions that the scripts need.")
	}
	if s.ScriptsError != "" {
		v.fail("scripts", "Scripts cannot be loaded: "+s.ScriptsError, aclRemedy+", and check that it is Redis 7 or Valkey")
	} else {
		v.ok("scripts", fmt.Sprintf("All %d scripts are loaded.", s.Scripts))
	}
	if s.DurabilityError != "" {
		v.fail("durability", s.DurabilityError, "configure Redis for it, or choose another durability: docs/operations.md")
	} else {
		v.ok("durability", "The setting durability is supported.")
	}
	v.stored(s)
	return v.found
}

// stored evaluates the data that a deployment has left there.
func (v *verdict) stored(s Store) {
	switch {
	case s.StoredError != "":
		v.fail("shards", "The stored data cannot be read: "+s.StoredError, aclRemedy)
		return
	case s.Shards == 0:
		v.ok("shards", "No deployment has used this Redis yet.")
	case s.WantedShards != 0 && s.WantedShards != s.Shards:
		v.fail("shards", fmt.Sprintf("The deployment in this Redis has %d shards, which cannot change; the setting here is %d.", s.Shards,
			s.WantedShards),
			fmt.Sprintf("set shards to %d or to 0, or use another Redis", s.Shards))
	default:
		v.ok("shards", fmt.Sprintf("The deployment in this Redis has %d shards.", s.Shards))
	}
	switch {
	case s.Replicas == 0:
		v.ok("settings", "No replica is running with this Redis.")
	case len(s.Differing) > 0:
		v.warn("settings", fmt.Sprintf("The settings here and those of %s differ in %s.", count(s.Replicas, "replica"),
			strings.Join(s.Differing, ", ")), "set the same values here; replicas with different signing keys reject each other's tokens")
	default:
		v.ok("settings", fmt.Sprintf("The settings here and those of %s are the same where they must be, keys included.",
			count(s.Replicas, "replica")))
	}
}
