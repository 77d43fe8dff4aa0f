package judge

import (
	"fmt"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// titles answer whether it is them or us, by how bad it is and whom it is about.
var titles = map[v1.Severity]map[v1.Party]string{
	v1.SeverityOK: {v1.None: "All is well"},
	v1.SeverityWarn: {v1.Us: "It works; see to Lubdub", v1.Them: "It works; see to the workers",
		v1.Both: "It works; see to Lubdub and to the workers"},
	v1.SeverityFail: {v1.Us: "It is us", v1.Them: "It is them", v1.Both: "It is us, and perhaps them"},
}

const messagesTold = 3 // of what is wrong; the others are counted, but for those that are never hidden

// standing are the findings by which a summary says how it stands where they are well.
var standing = []string{"replicas", "shards", "shard-time", "redis-round-trip", "workers", "timeouts"}

// Summarise says all findings in one sentence or two.
func Summarise(all []v1.Finding) v1.Summary {
	s := v1.Summary{Severity: v1.Worst(all), About: v1.None}
	var wrong []string
	more := 0
	for _, how := range []v1.Severity{v1.SeverityFail, v1.SeverityWarn} {
		for _, f := range all {
			if f.Severity != how {
				continue
			}
			if len(wrong) < messagesTold || f.StopsWork() {
				wrong = append(wrong, f.Message)
			} else {
				more++
			}
			switch {
			case how != s.Severity || s.About == f.About:
			case s.About == v1.None:
				s.About = f.About
			default:
				s.About = v1.Both
			}
		}
	}
	s.Title = titles[s.Severity][s.About]
	if more > 0 {
		wrong = append(wrong, fmt.Sprintf("And %d more.", more))
	}
	if len(wrong) == 0 {
		wrong = []string{"Nothing is wrong."}
	}
	s.Message = strings.Join(append(wrong, stands(all)...), " ")
	return s
}

// stands are the messages about what is well, each once.
func stands(all []v1.Finding) (messages []string) {
	for _, code := range standing {
		for _, f := range all {
			if f.Code == code && f.Severity == v1.SeverityOK {
				messages = append(messages, f.Message)
				break
			}
		}
	}
	return messages
}
