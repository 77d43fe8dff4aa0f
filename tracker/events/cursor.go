package events

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// InvalidCursor is the code of a cursor that does not belong to this deployment.
const InvalidCursor model.Code = "invalid_cursor"

// A cursor is the positions of a reader in all shards as one opaque string:
//
//	version · direction · shards · newest ms, then for each shard kind and how many ms it is older than that, number and mark
//	of an entry · checksum, which includes the deployment's identifier
//
// A run of shards at their start is written once.
const cursorVersion = 1

// maxCursor limits what is decoded: 4,096 shards of 10 bytes, with some to spare.
const maxCursor = 64 << 10

// Cursor encodes the positions of a reader as text for URLs and headers.
func (s *Service) Cursor(at Positions, back bool) string {
	return string(s.appendCursor(nil, at, back))
}

// appendCursor appends a cursor to a buffer.
func (s *Service) appendCursor(dst []byte, at Positions, back bool) []byte {
	newest := uint64(0)
	for _, p := range at {
		newest = max(newest, p.Ms)
	}
	b := make([]byte, 0, 16+6*len(at))
	b = append(b, cursorVersion, direction(back))
	b = binary.AppendUvarint(b, uint64(len(at)))
	b = binary.AppendUvarint(b, newest)
	for i := 0; i < len(at); i++ {
		p := at[i]
		if p.kind == atStart {
			run := 1
			for ; i+1 < len(at) && at[i+1].kind == atStart; i++ {
				run++
			}
			b = binary.AppendUvarint(append(b, byte(atStart)), uint64(run))
			continue
		}
		b = binary.AppendUvarint(b, (newest-p.Ms)<<2|uint64(p.kind))
		if p.kind == atEntry {
			b = binary.BigEndian.AppendUint16(binary.AppendUvarint(b, p.Seq), p.Mark)
		}
	}
	b = binary.BigEndian.AppendUint32(b, s.checksum(b))
	return base64.RawURLEncoding.AppendEncode(dst, b)
}

func direction(back bool) byte {
	if back {
		return 1
	}
	return 0
}

func (s *Service) checksum(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte(s.store.Deployment())), crc32.IEEETable, b)
}

func invalidCursor(field, why string) error {
	return &model.Error{Code: InvalidCursor, Op: "events", Cause: &model.FieldError{Field: field}, Message: fmt.Sprintf(
		"%s %s; use the next of a page or the id of a streamed event, unchanged, or now, or a time in RFC 3339", field, why)}
}

// ParseCursor decodes the positions of a cursor. It returns an error that names `field` when the cursor is not one of this deployment, or
// its direction is not `back`, which is that of pages in descending order.
func (s *Service) ParseCursor(field, text string, back bool) (Positions, error) {
	foreign := invalidCursor(field, "is not a cursor of this deployment")
	if len(text) > maxCursor {
		return nil, foreign
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 8 || b[0] != cursorVersion {
		return nil, foreign
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if sum != s.checksum(b) {
		return nil, foreign
	}
	at, ok := readPositions(b[2:], s.store.Shards())
	switch {
	case !ok:
		return nil, foreign
	case b[1] != direction(back):
		return nil, invalidCursor(field, "belongs to pages in the other order")
	}
	return at, nil
}

// readPositions decodes the positions of all shards; false: they are malformed.
func readPositions(b []byte, shards int) (Positions, bool) {
	ok := true
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			ok = false
			return 0
		}
		b = b[n:]
		return v
	}
	if number() != uint64(shards) {
		return nil, false
	}
	newest, at := number(), make(Positions, 0, shards)
	for ok && len(at) < shards {
		word := number()
		p := Position{Ms: newest - word>>2, kind: kind(word & 3)}
		switch p.kind {
		case atStart:
			run := number()
			if word != 0 || run == 0 || run > uint64(shards-len(at)) {
				return nil, false
			}
			at = append(at, make(Positions, run)...)
			continue
		case atEntry:
			if p.Seq = number(); len(b) < 2 {
				return nil, false
			}
			p.Mark, b = binary.BigEndian.Uint16(b), b[2:]
		}
		if word>>2 > newest {
			return nil, false
		}
		at = append(at, p)
	}
	return at, ok && len(b) == 0
}
