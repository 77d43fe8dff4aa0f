package v1

// Severity is how bad a finding is.
type Severity string

const (
	SeverityOK   Severity = "ok"
	SeverityWarn Severity = "warn" // it will cause harm, or has caused some
	SeverityFail Severity = "fail" // it causes harm now
)

// Party is what a finding is about.
type Party string

const (
	Us   Party = "us"   // Lubdub and Redis
	Them Party = "them" // workers, machines and queues
	Both Party = "both" // in a summary only
	None Party = "none" // in a summary only: nothing is wrong
)

// Finding is the result of one check. It is readable text: messages may change, codes do not.
type Finding struct {
	// Code names the check, such as redis-policy.
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	About    Party    `json:"about"`
	// Message describes the result in a sentence.
	Message string `json:"message"`
	// Remedy is what to do about it; absent if nothing is wrong.
	Remedy string `json:"remedy,omitempty"`
}

// StopsWork reports whether a finding must be shown however many others there are: a paused queue with waiting tasks, or Redis at its
// memory limit, stops work without any other finding.
func (f *Finding) StopsWork() bool {
	return f.Severity != SeverityOK && f.Code == "redis-memory" || f.Severity == SeverityWarn && f.Code == "queue"
}

// Summary is all findings in one.
type Summary struct {
	// Severity is the worst severity.
	Severity Severity `json:"severity"`
	// About is what the worst findings are about.
	About Party  `json:"about"`
	Title string `json:"title"`
	// Message is what is wrong, the worst first, and then the state of the deployment.
	Message string `json:"message"`
}

// Worst returns the worst severity of some findings; ok if there are none.
func Worst(all []Finding) Severity {
	worst := SeverityOK
	for _, f := range all {
		if f.Severity == SeverityFail || worst == SeverityOK {
			worst = f.Severity
		}
	}
	return worst
}
