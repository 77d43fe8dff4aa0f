package capacity

import (
	"fmt"
	"testing"

	"github.com/lubdub-io/lubdub/internal/config"
	"github.com/lubdub-io/lubdub/lua"
	"github.com/lubdub-io/lubdub/tracker"
)

// What a plan takes for granted is what servers do that were given no settings.
func TestPlansKnowTheDefaultSettings(t *testing.T) {
	d := config.Default()
	got := fmt.Sprint(d.MaxConnections, d.TokenCacheSize, d.TenantWorkers, tracker.TenantWebhookBytes, d.FinishedRetain)
	if want := fmt.Sprint(defaultConnections, defaultTokens, defaultTenantWorkers, webhookBytes, eventsMaxAge); got != want {
		t.Errorf("the defaults are %s; a plan computes with %s", got, want)
	}
	for shards := 1; shards <= 64; shards++ {
		p := Plan{Shards: shards}
		if got, want := p.eventsPerShard(&Fleet{}), lua.DefaultEventsPerShard(shards); got != int64(want) {
			t.Errorf("each of %d shards keeps %d events; a plan computes with %d", shards, want, got)
		}
	}
}
