package schema

import (
	"reflect"
	"testing"
)

// Each group has one shard and a bounded size, and items are neither lost nor reordered.
func TestByShardGroups(t *testing.T) {
	got := ByShard([]int{10, 20, 11, 12, 21, 13}, 2, func(i int) int { return i / 10 })
	want := [][]int{{10, 11}, {20, 21}, {12, 13}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("grouped as %v, want %v", got, want)
	}
	if got := ByShard(nil, 2, func(i int) int { return i }); got != nil {
		t.Errorf("nothing is grouped as %v", got)
	}
}
