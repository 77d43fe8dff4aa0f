package config

import (
	"maps"
	"slices"
	"strings"
)

// removed lists the settings of the last release that no longer exist, with their replacements. They are accepted for one release, without
// effect and with a warning; the release after that empties this table.
var removed = map[string]string{
	"base-path":                "it is the path of public-url; set that",
	"beat-pace":                "it is fixed at 1ms",
	"event-loop":               "event loops serve heartbeats wherever they can: on Linux, without TLS",
	"event-loops":              "there is one event loop for every eight cores",
	"events-max-age":           "events are kept for finished-retention; set that",
	"flapping-threshold":       "it is fixed at 3 times within 24 hours",
	"mass-expiry-share":        "it is fixed at 50 percent; mass-expiry-brake switches the brake on and off",
	"max-beats-per-second":     "raise worker-heartbeat-interval: workers beat as often a second as there are workers, divided by it",
	"max-body-bytes":           "it is fixed at 256 MiB",
	"max-control-requests":     "it is a sixteenth of max-connections; set that",
	"max-event-streams":        "it is half of max-connections; set that",
	"max-fires-per-tick":       "it is fixed at 1,000 fires a second for each sweeper",
	"max-pending-beats":        "it is fixed at 65,536 for each Redis node",
	"max-pending-calls":        "it is fixed at 8,192 for each Redis node",
	"max-schedules":            "it is fixed at 10,000 schedules for each tenant",
	"offline-worker-retention": "OFFLINE workers are kept for finished-retention; set that",
	"reconcile-rate":           "it is fixed at 250 entries a second",
	"shutdown-timeout":         "it is fixed at 20s",
	"tenant-webhook-bytes":     "it is fixed at 64 MiB for each tenant",
	"webhook-allow-http":       "webhooks may use http at the addresses that webhook-allow-cidrs lists; set that",
	"webhook-max-pending":      "deliveries may take 64 MiB for each tenant",
}

// IsRemoved reports whether a setting of this name existed in the last release and no longer does.
func IsRemoved(name string) bool { return removed[name] != "" }

// Removed is a setting that was given but no longer has an effect.
type Removed struct {
	Name    string
	Source  Source
	Instead string // what to do
}

// Removed lists the removed settings that were given, each once, by name.
func (l *Loaded) Removed() (all []Removed) {
	for _, name := range slices.Sorted(maps.Keys(removed)) {
		if from, given := l.sources[name]; given {
			all = append(all, Removed{name, from, removed[name]})
		}
	}
	return all
}

// envOf returns the variable of a setting.
func envOf(name string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
