package config

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// ownSettings may differ between replicas: their addresses and roles.
var ownSettings = []string{"listen", "admin-listen", "roles"}

// Digests returns two bytes of a hash of each setting that should be the same on all replicas, by name: enough to detect a difference,
// but not to recover a value. Passwords are omitted.
func (c *Config) Digests() map[string]string {
	digests := map[string]string{}
	for _, f := range Fields() {
		if slices.Contains(ownSettings, f.Name) {
			continue
		}
		text := f.Text(c)
		if f.Secret == "url" {
			text = RedactURL(text)
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(f.Name + "\x00" + text))
		sum := h.Sum32()
		digests[f.Name] = fmt.Sprintf("%04x", sum>>16^sum&0xffff)
	}
	return digests
}
