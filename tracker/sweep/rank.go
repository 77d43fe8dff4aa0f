package sweep

import "hash/fnv"

// sweeperID names a sweeper, in evidence and among those that share the shards.
type sweeperID string

// rank is this sweeper's place for a shard among the live ones, by rendezvous hashing: each shard has an order of its own, and
// adding or removing one sweeper moves only its share.
func (id sweeperID) rank(shard int, live []string) int {
	mine, rank := rendezvous(shard, string(id)), 0
	for _, other := range live {
		if w := rendezvous(shard, other); other != string(id) && (w > mine || w == mine && other > string(id)) {
			rank++
		}
	}
	return rank
}

func rendezvous(shard int, id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	_, _ = h.Write([]byte{'/', byte(shard >> 8), byte(shard)})
	x := h.Sum64() // FNV alone mixes the last bytes poorly
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

// First returns which of some sweepers looks after a shard before all others; "" when there is none.
func First(shard int, live []string) string {
	for _, id := range live {
		if sweeperID(id).rank(shard, live) == 0 {
			return id
		}
	}
	return ""
}
