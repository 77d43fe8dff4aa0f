package quotas

import (
	"context"
)

// CountTenant counts a tenant's live tasks and the bytes that its tasks take.
func (s *Service) CountTenant(tenant string) ([]int64, error) {
	return s.countTasks(context.Background(), tenant)
}
