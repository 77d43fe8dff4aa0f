package v1

// Health is the body of /livez, /readyz and /healthz.
type Health struct {
	// Status is ok; degraded: the store is in trouble, and this server should get work all the same; or draining: it should not.
	Status string `json:"status"`
	// Message says what is wrong when the status is not ok.
	Message string `json:"message,omitempty"`
	// Next says what to do about it when the status is not ok.
	Next string `json:"next,omitempty"`
}

// Index is the body of GET /.
type Index struct {
	Name    string     `json:"name"`
	Version string     `json:"version"`
	Links   IndexLinks `json:"links"`
	// Next says what to do first.
	Next string `json:"next"`
}

// IndexLinks are paths on the server, with the base path that a proxy shows it below.
type IndexLinks struct {
	API       string `json:"api"`
	OpenAPI   string `json:"openapi"`
	Docs      string `json:"docs"`
	Dashboard string `json:"dashboard"`
	Health    string `json:"health"`
	Version   string `json:"version"`
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

// CreateTokenRequest is the body of POST /v1/tokens.
type CreateTokenRequest struct {
	// Role may nothing that the request's own token may not; absent: the same role.
	Role string `json:"role,omitempty"`
	// TTLMs is how long the token holds, in whole seconds, and no longer than the request's own; absent: an hour.
	TTLMs *int64 `json:"ttlMs,omitempty"`
}

// CreateTokenResponse is the answer to POST /v1/tokens.
type CreateTokenResponse struct {
	Token string `json:"token"`
	Role  string `json:"role"`
	// TenantID and WorkspaceID are those of the request's own token; * is all.
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	// Queue is the only one for which an enroll token registers workers.
	Queue string `json:"queue,omitempty"`
	// Subject is who bears it, as the request's own token says.
	Subject   string `json:"subject,omitempty"`
	ExpiresAt Time   `json:"expiresAt"`
}

// RevokeTokensRequest is the body of POST /v1/tokens:revoke. It has one of subject, workerId and tenantId.
type RevokeTokensRequest struct {
	// Subject is whose control tokens do not hold any more, in the tenant and workspace of the request; with a token for all of
	// them in all, unless the query names one.
	Subject string `json:"subject,omitempty"`
	// WorkerID is the worker whose own token, and the tokens of whose tasks, do not hold any more.
	WorkerID string `json:"workerId,omitempty"`
	// TenantID is the tenant of whose tokens, of every kind, none holds any more. It takes an admin of all its workspaces.
	TenantID string `json:"tenantId,omitempty"`
	// IssuedBefore is when the last of them was issued, to the second; absent: now.
	IssuedBefore Time `json:"issuedBefore,omitzero"`
}

// RevokeTokensResponse is the answer to POST /v1/tokens:revoke: what is heeded by this server now, and by all within 2 s.
type RevokeTokensResponse struct {
	Subject  string `json:"subject,omitempty"`
	WorkerID string `json:"workerId,omitempty"`
	// TenantID is * where tokens of every tenant are meant.
	TenantID string `json:"tenantId"`
	// WorkspaceID is * where tokens of every workspace are meant.
	WorkspaceID string `json:"workspaceId"`
	// IssuedBefore is a whole second. A token that was issued in that second does not hold either.
	IssuedBefore Time `json:"issuedBefore"`
}
