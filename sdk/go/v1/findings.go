package v1

// Severity says how bad a finding is.
type Severity string

const (
	SeverityOK   Severity = "ok"
	SeverityWarn Severity = "warn" // it will do harm, or has done some
	SeverityFail Severity = "fail" // it does harm now
)

// Party says whom a finding is about.
type Party string

const (
	Us   Party = "us"   // Lubdub, and what it stands on
	Them Party = "them" // workers, machines and queues
	Both Party = "both" // in a summary only
	None Party = "none" // in a summary only: nothing is wrong
)

// Finding is one thing that was looked at, and how it was found. It is for people to read: messages may change, codes do not.
type Finding struct {
	// Code names what was looked at, such as redis-policy.
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	About    Party    `json:"about"`
	// Message is what was found, in a sentence.
	Message string `json:"message"`
	// Remedy is what to do about it; absent where nothing is wrong.
	Remedy string `json:"remedy,omitempty"`
}

// StopsWork reports whether a finding must be shown however many others there are: a paused queue in which tasks wait, and Redis at its
// memory limit, stop work without anything else being wrong.
func (f *Finding) StopsWork() bool {
	return f.Severity != SeverityOK && f.Code == "redis-memory" || f.Severity == SeverityWarn && f.Code == "queue"
}

// Summary is all findings in one.
type Summary struct {
	// Severity is that of the worst.
	Severity Severity `json:"severity"`
	// About says whom the worst are about.
	About Party  `json:"about"`
	Title string `json:"title"`
	// Message is what is wrong, the worst first, and then how the deployment stands.
	Message string `json:"message"`
}

// Worst is how bad the worst of some findings is; ok where there are none.
func Worst(all []Finding) Severity {
	worst := SeverityOK
	for _, f := range all {
		if f.Severity == SeverityFail || worst == SeverityOK {
			worst = f.Severity
		}
	}
	return worst
}
