package why

import "strings"

// The dashboard shows these sentences too: ui/src/words.gen.ts is generated from them. {name} is a value, which fill inserts.

// sentences are those about an attempt that Lubdub ended.
var sentences = map[string]string{
	"lastHeartbeat":    "Last heartbeat at {at}.",
	"workerHeartbeat":  "Last heartbeat of its worker at {at}.",
	"noHeartbeat":      "No heartbeat was received.",
	"silent":           "Silent for {silent} (timeout {timeout}; {outages}).",
	"silentNoTimeout":  "Silent for {silent} ({outages}).",
	"outages":          "{credit} of outages excluded",
	"noOutages":        "no outage time excluded",
	"decided":          "Decided by sweeper {sweeper} at {at}, {lag} after its deadline.",
	"workerLost":       "Its worker was lost ({reason}).",
	"massExpiryHeld":   "The mass-expiry brake had held it, so it had a second timeout period.",
	"retriesExhausted": "It was retryable, but its retry policy is exhausted.",
}

// unschedulable are the reasons for which a worker gets no task, by their names in the API; the values are its fields.
var unschedulable = map[string]string{
	"status":   "its status is {status}",
	"cordoned": "it is cordoned",
	"stale":    "its heartbeat is overdue",
	"full":     "it holds {heldCount} of at most {maxConcurrent} tasks",
}

// fill inserts values into a sentence: pairs of a name in braces and its value.
func fill(sentence string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(sentence)
}
