package quotas

import (
	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are the scripts of lua/quotas. They do not change after New.
type scripts struct{ tenantLive, tenantSizes *lua.Script }

func newScripts(set *lua.Set) scripts {
	return scripts{tenantLive: set.Get("tenant_live"), tenantSizes: set.Get("tenant_sizes")}
}

// tenantLiveCall counts a tenant's entries in an index of a shard in some states, one letter each, in workspaces behind `after`, up to a
// limit of workspaces; readTenantLive reads the reply.
func (s *Service) tenantLiveCall(shard int, index, tenant, states, after string, workspaces int) *store.Call {
	return store.NewCall(shard, s.scripts.tenantLive, []string{index}, tenant, states, after, workspaces)
}

// readTenantLive returns the count, and the workspace behind which there may be more; "": there is none.
func readTenantLive(r store.Reply) (count int64, after string) { return r.Int(0), r.Str(1) }

// tenantSizesCall counts the tasks of a tenant in a shard by size; readTenantSizes reads the reply.
func (s *Service) tenantSizesCall(shard int, index, tenant string) *store.Call {
	return store.NewCall(shard, s.scripts.tenantSizes, []string{index}, tenant)
}

// sizeCount is the number of tasks in a class of sizes.
type sizeCount struct {
	class string // its letter
	tasks int64
}

// readTenantSizes returns the number of tasks, and the number in each class above the minimum size.
func readTenantSizes(r store.Reply) (tasks int64, larger []sizeCount) {
	for i := 1; i+1 < len(r); i += 2 {
		larger = append(larger, sizeCount{r.Str(i), r.Int(i + 1)})
	}
	return r.Int(0), larger
}
