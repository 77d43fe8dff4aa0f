package judge

import (
	"cmp"
	"fmt"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// causes are the titles of summaries by the severity and the code of the first finding that is not healthy, which is the likeliest cause.
var causes = map[v1.Severity]map[string]string{
	v1.SeverityWarn: {
		"flapping":      "Working, but workers are repeatedly lost and come back",
		"poison-task":   "Working, but a task may be killing its workers",
		"failures":      "Working, but workers report failures",
		"queue":         "Working, but a queue with waiting tasks is paused",
		"recently-lost": "Working, but workers were lost recently",
		"shard-time":    "Working, but heartbeats could not be stored recently",
		"webhooks":      "Working, but webhook deliveries were dropped",
	},
	v1.SeverityFail: {
		"queue":        "Waiting tasks have no eligible worker",
		"redis-memory": "Redis is full and rejects writes",
		"workers":      "Workers are silent past their timeout",
	},
}

// titles are those of the other summaries: they state which party is at fault, by severity and party.
var titles = map[v1.Severity]map[v1.Party]string{
	v1.SeverityOK: {v1.None: "All systems healthy"},
	v1.SeverityWarn: {v1.Us: "Working, with warnings about Lubdub itself", v1.Them: "Working, with warnings about your workers",
		v1.Both: "Working, with warnings about Lubdub and about your workers"},
	v1.SeverityFail: {v1.Us: "Lubdub or Redis is at fault", v1.Them: "Your workers and queues are at fault",
		v1.Both: "Lubdub is at fault; possibly the workers too"},
}

// messagesShown is how many problems a summary lists; the rest are counted, except those that are never hidden.
const messagesShown = 3

// background contains the codes of the findings that a summary adds when they are healthy.
var background = []string{"replicas", "shards", "shard-time", "redis-round-trip", "workers", "timeouts", "recently-lost"}

// Summarise condenses all findings to one or two sentences.
func Summarise(all []v1.Finding) v1.Summary {
	s := v1.Summary{Severity: v1.Worst(all), About: v1.None}
	var wrong []string
	first, more := "", 0
	for _, how := range []v1.Severity{v1.SeverityFail, v1.SeverityWarn} {
		for _, f := range all {
			if f.Severity != how {
				continue
			}
			if len(wrong) < messagesShown || f.StopsWork() {
				wrong = append(wrong, f.Message)
			} else {
				more++
			}
			switch {
			case how != s.Severity:
			case s.About == v1.None:
				s.About, first = f.About, f.Code
			case s.About != f.About:
				s.About = v1.Both
			}
		}
	}
	s.Title = cmp.Or(causes[s.Severity][first], titles[s.Severity][s.About])
	if more > 0 {
		wrong = append(wrong, fmt.Sprintf("And %d more.", more))
	}
	if len(wrong) == 0 {
		wrong = []string{"No problems found."}
	}
	s.Message = strings.Join(append(wrong, healthy(all)...), " ")
	return s
}

// healthy returns the messages of the healthy background findings, each once.
func healthy(all []v1.Finding) (messages []string) {
	for _, code := range background {
		for _, f := range all {
			if f.Code == code && f.Severity == v1.SeverityOK {
				messages = append(messages, f.Message)
				break
			}
		}
	}
	return messages
}
