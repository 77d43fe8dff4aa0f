package judge

import (
	"slices"
	"strings"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// Redis is evaluated in the same words without a server, and each problem has a remedy.
func TestEachTroubleOfAStoreIsFound(t *testing.T) {
	good := func() Store {
		return Store{Redis: well().System.Redis, Scripts: 80, Shards: 4, WantedShards: 4, Replicas: 2}
	}
	for _, f := range OfStore(good()) {
		if f.Severity != v1.SeverityOK || f.Remedy != "" {
			t.Errorf("%+v", f)
		}
	}
	if all := OfStore(Store{Redis: well().System.Redis}); v1.Worst(all) != v1.SeverityOK {
		t.Errorf("an empty one: %+v", all)
	}
	for code, c := range map[string]struct {
		harm func(*Store)
		how  v1.Severity
		says string
	}{
		"redis-policy": {func(s *Store) { s.Redis[0].MaxMemoryPolicy = text("allkeys-lru") }, v1.SeverityFail, "may evict tasks"},
		"clock":        {func(s *Store) { s.Redis[0].ClockOffsetMs = 5000 }, v1.SeverityWarn, "ahead of this host"},
		"acl":          {func(s *Store) { s.Denied = []string{"xadd"} }, v1.SeverityFail, "xadd"},
		"scripts":      {func(s *Store) { s.ScriptsError = "NOPERM" }, v1.SeverityFail, "NOPERM"},
		"durability":   {func(s *Store) { s.DurabilityError = "appendonly is off" }, v1.SeverityFail, "appendonly"},
		"shards":       {func(s *Store) { s.WantedShards = 8 }, v1.SeverityFail, "has 4 shards, which cannot change; the setting here is 8"},
		"settings":     {func(s *Store) { s.Differing = []string{"signing-keys"} }, v1.SeverityWarn, "2 replicas differ in signing-keys"},
	} {
		s := good()
		c.harm(&s)
		all := OfStore(s)
		at := slices.IndexFunc(all, func(f v1.Finding) bool { return f.Severity != v1.SeverityOK })
		if at < 0 || all[at].Code != code || all[at].Severity != c.how || !strings.Contains(all[at].Message, c.says) || all[at].Remedy == "" {
			t.Errorf("%s: %+v", code, all)
		}
	}
}
