package sweep

import "hash/fnv"

// sweeperID identifies a sweeper, in evidence and in the rendezvous for shards.
type sweeperID string

// rank returns this sweeper's position for a shard among the live ones, by rendezvous hashing: each shard has its own order, and
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

// First returns which of the live sweepers has rank 0 for a shard; "": there are none.
func First(shard int, live []string) string {
	for _, id := range live {
		if sweeperID(id).rank(shard, live) == 0 {
			return id
		}
	}
	return ""
}
