package v1

// Health is the body of /livez, /readyz and /healthz.
type Health struct {
	// Status is ok, draining or unavailable.
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
