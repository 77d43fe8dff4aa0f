package client

import (
	"context"
	"iter"
	"net/http"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// PageQuery is the query of lists without filters.
type PageQuery struct {
	Order     string `url:"order"`    // asc (the default) or desc
	PageSize  int    `url:"pageSize"` // 1 to 100; 0: 100
	PageToken string `url:"pageToken"`
}

// CreateSchedule creates a schedule.
func (c *Client) CreateSchedule(ctx context.Context, r v1.CreateScheduleRequest) (*v1.Schedule, error) {
	return postOnce[v1.Schedule](ctx, c, "/v1/schedules", r)
}

// ListSchedules returns one page of schedules.
func (c *Client) ListSchedules(ctx context.Context, q PageQuery) (*v1.ScheduleList, error) {
	return get[v1.ScheduleList](ctx, c, "/v1/schedules", values(q))
}

// Schedules yields all schedules, page by page. An error is the last value.
func (c *Client) Schedules(ctx context.Context, q PageQuery) iter.Seq2[v1.Schedule, error] {
	return pages(q.PageToken, func(token string) ([]v1.Schedule, string, error) {
		q.PageToken = token
		page, err := c.ListSchedules(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return page.Schedules, page.NextPageToken, nil
	})
}

// GetSchedule returns a schedule.
func (c *Client) GetSchedule(ctx context.Context, scheduleID string) (*v1.Schedule, error) {
	return get[v1.Schedule](ctx, c, "/v1/schedules/"+seg(scheduleID), nil)
}

// ReplaceSchedule replaces a schedule's definition; absent fields get their defaults.
func (c *Client) ReplaceSchedule(ctx context.Context, scheduleID string, r v1.ChangeScheduleRequest) (*v1.Schedule, error) {
	k := &call{method: http.MethodPut, path: "/v1/schedules/" + seg(scheduleID), query: c.scoped(nil), in: r}
	return invoke[v1.Schedule](ctx, c, k)
}

// ChangeSchedule changes the given fields of a schedule.
func (c *Client) ChangeSchedule(ctx context.Context, scheduleID string, r v1.ChangeScheduleRequest) (*v1.Schedule, error) {
	k := &call{method: http.MethodPatch, path: "/v1/schedules/" + seg(scheduleID), query: c.scoped(nil), in: r}
	return invoke[v1.Schedule](ctx, c, k)
}

// DeleteSchedule deletes a schedule.
func (c *Client) DeleteSchedule(ctx context.Context, scheduleID string) (*v1.DeletedSchedule, error) {
	k := &call{method: http.MethodDelete, path: "/v1/schedules/" + seg(scheduleID), query: c.scoped(nil)}
	return invoke[v1.DeletedSchedule](ctx, c, k)
}

// PauseSchedule stops a schedule.
func (c *Client) PauseSchedule(ctx context.Context, scheduleID string) (*v1.Schedule, error) {
	return post[v1.Schedule](ctx, c, "/v1/schedules/"+seg(scheduleID)+"/pause", none{})
}

// ResumeSchedule ends a pause; missed fires are caught up.
func (c *Client) ResumeSchedule(ctx context.Context, scheduleID string) (*v1.Schedule, error) {
	return post[v1.Schedule](ctx, c, "/v1/schedules/"+seg(scheduleID)+"/resume", none{})
}

// FireSchedule fires a schedule now. It is not retried after a lost answer.
func (c *Client) FireSchedule(ctx context.Context, scheduleID string) (*v1.FiredResponse, error) {
	return postOnce[v1.FiredResponse](ctx, c, "/v1/schedules/"+seg(scheduleID)+"/fire", none{})
}

// BackfillSchedule fires what a schedule would have fired in a past period.
func (c *Client) BackfillSchedule(ctx context.Context, scheduleID string, r v1.BackfillRequest) (*v1.AskedFires, error) {
	return post[v1.AskedFires](ctx, c, "/v1/schedules/"+seg(scheduleID)+"/backfill", r)
}

// NextFires returns the next fires of a schedule; count 0: the server's default.
func (c *Client) NextFires(ctx context.Context, scheduleID string, count int) (*v1.NextFires, error) {
	return get[v1.NextFires](ctx, c, "/v1/schedules/"+seg(scheduleID)+"/next", values(struct {
		Count int `url:"count"`
	}{count}))
}
