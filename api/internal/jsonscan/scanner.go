package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// Scanner scans JSON text without allocating. It accepts exactly what encoding/json accepts, except that it needs valid UTF-8, which its
// callers check for the whole body at once.
//
// Its methods return false on a syntax error and leave Pos where that was found. The slices that they return point into Text.
type Scanner struct {
	Text  []byte
	Pos   int // of the next byte
	depth int
}

// MaxDepth is encoding/json's nesting limit.
const MaxDepth = 10000

// TooDeep reports whether the scan ended because the nesting is deeper than MaxDepth.
func (s *Scanner) TooDeep() bool { return s.depth == MaxDepth+1 }

// Space skips white space.
func (s *Scanner) Space() {
	for s.Pos < len(s.Text) {
		switch s.Text[s.Pos] {
		case ' ', '\t', '\n', '\r':
			s.Pos++
		default:
			return
		}
	}
}

// Peek skips white space and returns the next byte, or 0 at the end.
func (s *Scanner) Peek() byte {
	if s.Pos < len(s.Text) && s.Text[s.Pos] > ' ' { // usually
		return s.Text[s.Pos]
	}
	return s.peekSpace()
}

func (s *Scanner) peekSpace() byte {
	s.Space()
	if s.Pos < len(s.Text) {
		return s.Text[s.Pos]
	}
	return 0
}

// Next skips white space and consumes c, or returns false.
func (s *Scanner) Next(c byte) bool {
	if s.Peek() != c {
		return false
	}
	s.Pos++
	return true
}

// End reports whether only white space is left.
func (s *Scanner) End() bool {
	s.Space()
	return s.Pos == len(s.Text)
}

// Str consumes a string and returns it unchanged, with its quotes; escaped reports whether it contains escapes.
func (s *Scanner) Str() (lit []byte, escaped, ok bool) {
	if s.Peek() != '"' {
		return nil, false, false
	}
	start := s.Pos
	for i := start + 1; i < len(s.Text); i++ {
		for ; i+8 <= len(s.Text); i += 8 { // a token has hundreds of plain bytes
			if m := special(binary.LittleEndian.Uint64(s.Text[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
		}
		if i == len(s.Text) {
			break
		}
		if plainByte[s.Text[i]] {
			continue
		}
		switch c := s.Text[i]; {
		case c == '"':
			s.Pos = i + 1
			return s.Text[start:s.Pos], escaped, true
		case c == '\\':
			escaped = true
			i++
			if i == len(s.Text) {
				s.Pos = i
				return nil, false, false
			}
			switch s.Text[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i == len(s.Text) || !isHex(s.Text[i]) {
						s.Pos = i
						return nil, false, false
					}
				}
			default:
				s.Pos = i
				return nil, false, false
			}
		case c < 0x20:
			s.Pos = i
			return nil, false, false
		}
	}
	s.Pos = len(s.Text)
	return nil, false, false
}

// special is not 0 if one of eight bytes is not plain in a string; then its lowest bit belongs to the first such byte.
func special(eight uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := eight^'"'*ones, eight^'\\'*ones
	return ((eight-0x20*ones)&^eight | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
}

// plainByte marks the bytes that need no escape in a string.
var plainByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return
}()

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// Number consumes a number and returns it unchanged.
func (s *Scanner) Number() (lit []byte, ok bool) {
	s.Space()
	start := s.Pos
	if s.Pos < len(s.Text) && s.Text[s.Pos] == '-' {
		s.Pos++
	}
	switch {
	case s.Pos < len(s.Text) && s.Text[s.Pos] == '0':
		s.Pos++
	case !s.digits():
		return nil, false
	}
	if s.Pos < len(s.Text) && s.Text[s.Pos] == '.' {
		s.Pos++
		if !s.digits() {
			return nil, false
		}
	}
	if s.Pos < len(s.Text) && s.Text[s.Pos]|0x20 == 'e' {
		s.Pos++
		if s.Pos < len(s.Text) && (s.Text[s.Pos] == '+' || s.Text[s.Pos] == '-') {
			s.Pos++
		}
		if !s.digits() {
			return nil, false
		}
	}
	return s.Text[start:s.Pos], true
}

// digits consumes one or more digits.
func (s *Scanner) digits() bool {
	start := s.Pos
	for s.Pos < len(s.Text) && '0' <= s.Text[s.Pos] && s.Text[s.Pos] <= '9' {
		s.Pos++
	}
	return s.Pos > start
}

func (s *Scanner) word(w string) bool {
	if len(s.Text)-s.Pos < len(w) || string(s.Text[s.Pos:s.Pos+len(w)]) != w {
		return false
	}
	s.Pos += len(w)
	return true
}

// Name consumes the name of an object's member and the colon after it.
func (s *Scanner) Name() (name []byte, ok bool) {
	lit, escaped, ok := s.Str()
	if !ok {
		return nil, false
	}
	return Unquote(lit, escaped), s.Next(':')
}

// Null consumes a null if that is next.
func (s *Scanner) Null() bool { return s.Peek() == 'n' && s.word("null") }

// Skip consumes any value.
func (s *Scanner) Skip() bool {
	switch c := s.Peek(); {
	case c == '"':
		_, _, ok := s.Str()
		return ok
	case c == '{':
		for more := s.Open('{', '}'); more; more = s.More('}') {
			if _, _, ok := s.Str(); !ok || !s.Next(':') || !s.Skip() {
				return false
			}
		}
		return s.Close('}')
	case c == '[':
		for more := s.Open('[', ']'); more; more = s.More(']') {
			if !s.Skip() {
				return false
			}
		}
		return s.Close(']')
	case c == '-' || '0' <= c && c <= '9':
		_, ok := s.Number()
		return ok
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return false
}

// Open consumes the opening bracket and reports whether an element follows. Loops over elements have the form
//
//	for more := s.Open('[', ']'); more; more = s.More(']') { … }
//	if !s.Close(']') { syntax error }
func (s *Scanner) Open(c, closing byte) bool {
	if !s.Next(c) {
		return false
	}
	if s.depth++; s.depth > MaxDepth {
		return false
	}
	return s.Peek() != closing
}

// More consumes the comma after an element, and reports whether there was one.
func (s *Scanner) More(closing byte) bool {
	if s.Peek() != ',' {
		return false
	}
	s.Pos++
	return s.Peek() != closing || s.fail()
}

// fail makes the following Close fail: there is a comma before the closing bracket.
func (s *Scanner) fail() bool {
	s.depth = MaxDepth + 2
	return false
}

// Close consumes the closing bracket.
func (s *Scanner) Close(c byte) bool {
	if s.depth > MaxDepth || !s.Next(c) {
		return false
	}
	s.depth--
	return true
}
