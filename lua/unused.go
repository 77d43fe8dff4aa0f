package lua

import "slices"

// withoutUnused removes top-level functions that nothing calls: Redis creates every function of a script each time it runs, and no
// script needs all of the fragments that it includes. `all`: how often each name occurs, before and after.
func withoutUnused(parts []part, all map[string]int) []part {
	for {
		unused := slices.IndexFunc(parts, func(p part) bool { return p.name != "" && all[p.name] == p.uses[p.name] })
		if unused < 0 {
			return parts
		}
		for name, n := range parts[unused].uses {
			all[name] -= n
		}
		parts = slices.Delete(parts, unused, unused+1)
	}
}
