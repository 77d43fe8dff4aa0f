package quotas

import (
	"context"
)

// CountTenant counts a tenant's live tasks and the bytes that its tasks take.
func (t *Service) CountTenant(tenant string) ([]int64, error) {
	return t.CountTasks(context.Background(), tenant)
}
