package quotas

import (
	"context"
)

// CountTenant returns a tenant's number of live tasks and the bytes of its tasks.
func (s *Service) CountTenant(tenant string) ([]int64, error) {
	return s.countTasks(context.Background(), tenant)
}
