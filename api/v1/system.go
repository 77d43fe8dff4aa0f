package v1

// Health is the body of /livez, /readyz and /healthz.
type Health struct {
	// Status is ok; degraded: the store is in trouble, and this server should get work all the same; or draining: it should not.
	Status string `json:"status"`
	// Message says what is wrong when the status is not ok.
	Message string `json:"message,omitempty"`
}

// Version is the body of /version.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Go is the version of Go that the server was built with.
	Go string `json:"go"`
}

// ReleaseRequest is the body of POST /v1/system:release.
type ReleaseRequest struct {
	// DurationMs is how long the mass expiry brake spares nothing in this tenant and workspace; absent: 10 minutes.
	DurationMs *int64 `json:"durationMs,omitempty"`
}

// ReleaseResponse is the answer to POST /v1/system:release.
type ReleaseResponse struct {
	// TasksReleased were spared and expire now unless they beat.
	TasksReleased int `json:"tasksReleased"`
	// WorkersReleased were spared and go OFFLINE now unless they beat.
	WorkersReleased int  `json:"workersReleased"`
	ReleasedUntil   Time `json:"releasedUntil"`
}
