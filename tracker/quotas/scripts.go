package quotas

import (
	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker/store"
)

// scripts are those of lua/quotas. Filled when the service is made, and read only.
type scripts struct{ tenantLive, tenantSizes *lua.Script }

func newScripts(set *lua.Set) scripts {
	return scripts{tenantLive: set.Get("tenant_live"), tenantSizes: set.Get("tenant_sizes")}
}

// tenantLiveCall counts what a tenant has in an index of a shard in some states, a letter each, in workspaces after the given
// one, up to a limit; readTenantLive reads the reply.
func (s *Service) tenantLiveCall(shard int, index, tenant, states, after string, workspaces int) *store.Call {
	return store.NewCall(shard, s.scripts.tenantLive, []string{index}, tenant, states, after, workspaces)
}

// readTenantLive returns how many there are, and the workspace after which there may be more; "": there are not.
func readTenantLive(r store.Reply) (count int64, after string) { return r.Int(0), r.Str(1) }

// tenantSizesCall counts the tasks of a tenant in a shard by what they take; readTenantSizes reads the reply.
func (s *Service) tenantSizesCall(shard int, index, tenant string) *store.Call {
	return store.NewCall(shard, s.scripts.tenantSizes, []string{index}, tenant)
}

// sizeCount is how many tasks are of a class of sizes.
type sizeCount struct {
	class string // its letter
	tasks int64
}

// readTenantSizes returns how many tasks there are, and how many are in each class of those that take more than a little.
func readTenantSizes(r store.Reply) (tasks int64, larger []sizeCount) {
	for i := 1; i+1 < len(r); i += 2 {
		larger = append(larger, sizeCount{r.Str(i), r.Int(i + 1)})
	}
	return r.Int(0), larger
}
