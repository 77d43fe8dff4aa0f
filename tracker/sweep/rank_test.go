package sweep

import "testing"

func TestRank(t *testing.T) {
	ids := []string{"swp_a", "swp_b", "swp_c"}
	for shard := range 64 {
		seen := map[int]bool{}
		for _, id := range ids {
			seen[sweeperID(id).rank(shard, ids)] = true
		}
		if len(seen) != 3 || !seen[0] {
			t.Fatalf("shard %d: ranks %v", shard, seen)
		}
	}
}
