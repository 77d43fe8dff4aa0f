package events

import (
	"strconv"
	"strings"
	"time"
)

// Position is a reader's position in one shard. The zero Position is before the shard's first entry.
type Position struct {
	Ms, Seq uint64 // of an entry's ID
	Mark    uint16 // hash of the entry's values: another entry may get its ID once the store has lost writes
	kind    kind
}

// kind is the kind of a Position.
type kind uint8

const (
	atStart  kind = iota // before the first entry
	atEntry              // behind an entry that was read; going back, before it
	atTime               // behind everything in that ms; going back, before it
	atNewest             // going back only: behind the newest entry
)

// AtTime returns the position behind everything up to t, or going back before everything since, by the clock of the shard's server.
func AtTime(t time.Time) Position {
	return Position{Ms: uint64(max(0, t.UnixMilli())), kind: atTime}
}

// AtEntry returns the position behind an entry that was read, from the ID and Mark of its Position; "" is before the first entry.
func AtEntry(id string, mark uint16) Position {
	ms, seq, ok := parseID(id)
	if !ok {
		return Position{}
	}
	return Position{Ms: ms, Seq: seq, Mark: mark, kind: atEntry}
}

// IsStart reports whether the position is before the shard's first entry.
func (p Position) IsStart() bool { return p.kind == atStart }

// ID returns the entry's ID as Redis formats it.
func (p Position) ID() string {
	return strconv.FormatUint(p.Ms, 10) + "-" + strconv.FormatUint(p.Seq, 10)
}

// Time returns when the entry was written, by the clock of the server that had the shard then; zero at the start.
func (p Position) Time() time.Time {
	if p.kind == atStart || p.kind == atNewest {
		return time.Time{}
	}
	return time.UnixMilli(int64(p.Ms)).UTC()
}

// Before reports whether p is before q in the order of a stream.
func (p Position) Before(q Position) bool {
	if p.kind == atStart || q.kind == atStart {
		return p.kind == atStart && q.kind != atStart
	}
	return p.Ms < q.Ms || p.Ms == q.Ms && p.Seq < q.Seq
}

// forwards returns the position in the format of read.lua.
func (p Position) forwards() string {
	switch p.kind {
	case atEntry:
		return p.ID()
	case atTime:
		return ">" + strconv.FormatUint(p.Ms+1, 10) + "-0"
	}
	return ""
}

// backwards returns the position in the format of read.lua for going back: from the entry before it.
func (p Position) backwards() string {
	switch {
	case p.kind == atNewest:
		return "<+"
	case p.kind == atStart || p.Ms == 0:
		return "<0-0" // nothing is before it
	case p.kind == atEntry && p.Seq > 0:
		return "<" + Position{Ms: p.Ms, Seq: p.Seq - 1}.ID()
	}
	return "<" + strconv.FormatUint(p.Ms-1, 10) // without a number: the last entry of that ms
}

// parseID parses an entry's ID.
func parseID(id string) (ms, seq uint64, ok bool) {
	a, b, ok := strings.Cut(id, "-")
	ms, err := strconv.ParseUint(a, 10, 64)
	seq, err2 := strconv.ParseUint(b, 10, 64)
	return ms, seq, ok && err == nil && err2 == nil
}

// Positions are a reader's positions in all shards.
type Positions []Position

// everywhere returns the same position for all shards.
func everywhere(shards int, p Position) Positions {
	all := make(Positions, shards)
	for i := range all {
		all[i] = p
	}
	return all
}
