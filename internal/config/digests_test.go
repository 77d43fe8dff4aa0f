package config

import "testing"

// Digests show which settings differ, except those that may, and nothing of a password.
func TestDigestsShowDifferences(t *testing.T) {
	a, b := Default(), Default()
	b.Listen, b.Roles.Sweeper = "127.0.0.1:9999", false
	a.Redis, b.Redis = "redis://:one@127.0.0.1:6379/0", "redis://:two@127.0.0.1:6379/0"
	for name, digest := range a.Digests() {
		if b.Digests()[name] != digest || len(digest) != 4 {
			t.Errorf("%s differs: %s and %s", name, digest, b.Digests()[name])
		}
	}
	for name, change := range map[string]func(*Config){
		"redis":                     func(c *Config) { c.Redis = "redis://:one@127.0.0.1:6380/0" },
		"finished-retention":        func(c *Config) { c.FinishedRetain *= 2 },
		"health-check-period":       func(c *Config) { c.HealthCheck++ },
		"mass-expiry-brake":         func(c *Config) { c.MassExpiryBrake = "on" },
		"signing-keys":              func(c *Config) { c.SigningKeys = "k=AAAA" },
		"max-connections":           func(c *Config) { c.MaxConnections++ },
		"worker-timeout-multiplier": func(c *Config) { c.WorkerMultiplier++ },
	} {
		b := *a
		change(&b)
		for of, digest := range b.Digests() {
			if differs := a.Digests()[of] != digest; differs != (of == name) {
				t.Errorf("with another %s: %s differs: %v", name, of, differs)
			}
		}
	}
}
