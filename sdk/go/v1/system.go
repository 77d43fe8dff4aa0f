package v1

// Health is the body of /livez, /readyz and /healthz.
type Health struct {
	// Status is ok; degraded: the store is in trouble, but this server should still get work; or draining: it should not.
	Status string `json:"status"`
	// Message is what is wrong if the status is not ok.
	Message string `json:"message,omitempty"`
	// Next is what to do about it if the status is not ok.
	Next string `json:"next,omitempty"`
}

// Index is the body of GET /.
type Index struct {
	Name    string     `json:"name"`
	Version string     `json:"version"`
	Links   IndexLinks `json:"links"`
	// Next is what to do first.
	Next string `json:"next"`
}

// IndexLinks are paths on the server, including the base path of a proxy.
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
	// DurationMs is how long the mass-expiry brake is off in this tenant and workspace; absent: 10 minutes.
	DurationMs *int64 `json:"durationMs,omitempty"`
}

// ReleaseResponse is the answer to POST /v1/system:release.
type ReleaseResponse struct {
	// TasksReleased were held and expire now unless a heartbeat arrives.
	TasksReleased int `json:"tasksReleased"`
	// WorkersReleased were held and go OFFLINE now unless a heartbeat arrives.
	WorkersReleased int  `json:"workersReleased"`
	ReleasedUntil   Time `json:"releasedUntil"`
}

// CreateTokenRequest is the body of POST /v1/tokens.
type CreateTokenRequest struct {
	// Role must have no more rights than the request's own token; absent: the same role.
	Role string `json:"role,omitempty"`
	// TTLMs is how long the token is valid, in whole seconds, and no longer than the request's own; absent: an hour.
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
	// Subject is the bearer, as in the request's own token.
	Subject   string `json:"subject,omitempty"`
	ExpiresAt Time   `json:"expiresAt"`
}

// RevokeTokensRequest is the body of POST /v1/tokens:revoke. It has one of subject, workerId and tenantId.
type RevokeTokensRequest struct {
	// Subject is the bearer whose control tokens are revoked, in the tenant and workspace of the request; with a token for all of them in
	// all, unless the query names one.
	Subject string `json:"subject,omitempty"`
	// WorkerID is the worker whose own token, and the tokens of whose tasks, are revoked.
	WorkerID string `json:"workerId,omitempty"`
	// TenantID is the tenant whose tokens of every kind are revoked. This needs an admin token for all its workspaces.
	TenantID string `json:"tenantId,omitempty"`
	// IssuedBefore revokes tokens issued up to this time, to the second; absent: now.
	IssuedBefore Time `json:"issuedBefore,omitzero"`
}

// RevokeTokensResponse is the answer to POST /v1/tokens:revoke: it takes effect on this server now, and on all within 2 s.
type RevokeTokensResponse struct {
	Subject  string `json:"subject,omitempty"`
	WorkerID string `json:"workerId,omitempty"`
	// TenantID is * if tokens of every tenant are revoked.
	TenantID string `json:"tenantId"`
	// WorkspaceID is * if tokens of every workspace are revoked.
	WorkspaceID string `json:"workspaceId"`
	// IssuedBefore is a whole second. A token that was issued in that second is revoked too.
	IssuedBefore Time `json:"issuedBefore"`
}
