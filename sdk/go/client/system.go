package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// StatsQuery sets how much of the series to return.
type StatsQuery struct {
	Steps int `url:"steps"` // the number of newest steps; 0: all of the last hour
}

// GetStats counts tasks, workers and the events of the last hour, which is the sum of all steps however few are returned.
func (c *Client) GetStats(ctx context.Context, q StatsQuery) (*v1.Stats, error) {
	return get[v1.Stats](ctx, c, "/v1/stats", values(q))
}

// VerdictQuery filters and groups verdicts.
type VerdictQuery struct {
	By      []string `url:"by"`      // machineId, version, type, queue, reason, workerId; none: one group of all
	SinceMs int64    `url:"sinceMs"` // how far back; 0: an hour
	Reason  string   `url:"reason"`
	Queue   string   `url:"queue"`
	Type    string   `url:"type"`
}

// CountVerdicts counts the attempts and workers that Lubdub ended.
func (c *Client) CountVerdicts(ctx context.Context, q VerdictQuery) (*v1.VerdictCounts, error) {
	return get[v1.VerdictCounts](ctx, c, "/v1/stats/verdicts", values(q))
}

// GetSystem returns the state of the deployment.
func (c *Client) GetSystem(ctx context.Context) (*v1.System, error) {
	return get[v1.System](ctx, c, "/v1/system", nil)
}

// ListScopes returns one page of tenants and workspaces in use.
func (c *Client) ListScopes(ctx context.Context, q PageQuery) (*v1.ScopeList, error) {
	return get[v1.ScopeList](ctx, c, "/v1/scopes", values(q))
}

// Scopes yields all tenants and workspaces in use, page by page. An error is the last value.
func (c *Client) Scopes(ctx context.Context, q PageQuery) iter.Seq2[v1.Scope, error] {
	return pages(q.PageToken, func(token string) ([]v1.Scope, string, error) {
		q.PageToken = token
		page, err := c.ListScopes(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return page.Scopes, page.NextPageToken, nil
	})
}

// Sweep sweeps now.
func (c *Client) Sweep(ctx context.Context) (*v1.SweepResponse, error) {
	return post[v1.SweepResponse](ctx, c, "/v1/system:sweep", none{})
}

// ReleaseBrake releases everything the mass-expiry brake is holding.
func (c *Client) ReleaseBrake(ctx context.Context, r v1.ReleaseRequest) (*v1.ReleaseResponse, error) {
	return post[v1.ReleaseResponse](ctx, c, "/v1/system:release", r)
}

// CreateToken creates a token with no more rights than the client's own, and no longer a life.
func (c *Client) CreateToken(ctx context.Context, r v1.CreateTokenRequest) (*v1.CreateTokenResponse, error) {
	return post[v1.CreateTokenResponse](ctx, c, "/v1/tokens", r)
}

// RevokeTokens revokes tokens.
func (c *Client) RevokeTokens(ctx context.Context, r v1.RevokeTokensRequest) (*v1.RevokeTokensResponse, error) {
	return post[v1.RevokeTokensResponse](ctx, c, "/v1/tokens:revoke", r)
}

// Livez checks that the server's process runs.
func (c *Client) Livez(ctx context.Context) (*v1.Health, error) {
	return open[v1.Health](ctx, c, "/livez")
}

// Readyz checks that the server is ready; an *Error with status 503 if it is not.
func (c *Client) Readyz(ctx context.Context) (*v1.Health, error) {
	return open[v1.Health](ctx, c, "/readyz")
}

// Healthz returns the health of the server.
func (c *Client) Healthz(ctx context.Context) (*v1.Health, error) {
	return open[v1.Health](ctx, c, "/healthz")
}

// ServerVersion returns the version of the server. The SDK's is Version.
func (c *Client) ServerVersion(ctx context.Context) (*v1.Version, error) {
	return open[v1.Version](ctx, c, "/version")
}

// Index returns what the server is, and the paths of its pages and documents.
func (c *Client) Index(ctx context.Context) (*v1.Index, error) {
	return open[v1.Index](ctx, c, "/")
}

// OpenAPI returns the server's OpenAPI document.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	raw, err := open[json.RawMessage](ctx, c, "/openapi.json")
	if err != nil {
		return nil, err
	}
	return *raw, nil
}

func open[T any](ctx context.Context, c *Client, path string) (*T, error) {
	return invoke[T](ctx, c, &call{method: http.MethodGet, path: path, open: true})
}
