package api

import "unicode/utf8"

// scanner walks over JSON text without allocating. It accepts exactly what encoding/json accepts, but that
// it wants valid UTF-8, which its callers check for the whole body at once.
//
// Its methods answer false on a syntax error and leave i where that was found. Slices that they give out
// borrow b.
type scanner struct {
	b     []byte
	i     int
	depth int
}

// maxDepth is encoding/json's own limit of nesting.
const maxDepth = 10000

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek skips white space and gives the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.b) && s.b[s.i] > ' ' { // mostly
		return s.b[s.i]
	}
	return s.peekSpace()
}

func (s *scanner) peekSpace() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// next skips white space and takes c, or answers false.
func (s *scanner) next(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// end tells whether nothing but white space is left.
func (s *scanner) end() bool {
	s.space()
	return s.i == len(s.b)
}

// str takes a string and gives it as it stands there, with its quotes; escaped tells whether it has escapes.
func (s *scanner) str() (lit []byte, escaped, ok bool) {
	if s.peek() != '"' {
		return nil, false, false
	}
	start := s.i
	for i := start + 1; i < len(s.b); i++ {
		if plainByte[s.b[i]] {
			continue
		}
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return s.b[start:s.i], escaped, true
		case c == '\\':
			escaped = true
			i++
			if i == len(s.b) {
				s.i = i
				return nil, false, false
			}
			switch s.b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i == len(s.b) || !isHex(s.b[i]) {
						s.i = i
						return nil, false, false
					}
				}
			default:
				s.i = i
				return nil, false, false
			}
		case c < 0x20:
			s.i = i
			return nil, false, false
		}
	}
	s.i = len(s.b)
	return nil, false, false
}

// plainByte has what stands for itself in a string.
var plainByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return
}()

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// number takes a number and gives it as it stands there.
func (s *scanner) number() (lit []byte, ok bool) {
	s.space()
	start := s.i
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	switch {
	case s.i < len(s.b) && s.b[s.i] == '0':
		s.i++
	case !s.digits():
		return nil, false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return nil, false
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if !s.digits() {
			return nil, false
		}
	}
	return s.b[start:s.i], true
}

// digits takes one digit or more.
func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

// null takes a null when that is what comes next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.word("null") }

// skip takes any value.
func (s *scanner) skip() bool {
	switch c := s.peek(); {
	case c == '"':
		_, _, ok := s.str()
		return ok
	case c == '{':
		for more := s.open('{', '}'); more; more = s.more('}') {
			if _, _, ok := s.str(); !ok || !s.next(':') || !s.skip() {
				return false
			}
		}
		return s.close('}')
	case c == '[':
		for more := s.open('[', ']'); more; more = s.more(']') {
			if !s.skip() {
				return false
			}
		}
		return s.close(']')
	case c == '-' || '0' <= c && c <= '9':
		_, ok := s.number()
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

// open takes the opening bracket and tells whether an element follows. Loops over elements have the form
//
//	for more := s.open('[', ']'); more; more = s.more(']') { … }
//	if !s.close(']') { syntax error }
func (s *scanner) open(c, closing byte) bool {
	if !s.next(c) {
		return false
	}
	if s.depth++; s.depth > maxDepth {
		return false
	}
	return s.peek() != closing
}

// more takes a comma when one follows an element.
func (s *scanner) more(closing byte) bool {
	if s.peek() != ',' {
		return false
	}
	s.i++
	return s.peek() != closing || s.fail()
}

// fail makes the close that follows refuse: a comma stands before the closing bracket.
func (s *scanner) fail() bool {
	s.depth = maxDepth + 2
	return false
}

func (s *scanner) close(c byte) bool {
	if s.depth > maxDepth || !s.next(c) {
		return false
	}
	s.depth--
	return true
}

// unquoted gives the text of a string literal that has no escapes.
func unquoted(lit []byte) []byte { return lit[1 : len(lit)-1] }

// cutString cuts a valid string literal to at most limit bytes with its quotes, and neither within an escape,
// nor between the halves of a surrogate pair, nor within a UTF-8 sequence. What it must change it appends to
// buf, which it gives back.
func cutString(lit []byte, limit int, buf []byte) (cut, _ []byte) {
	if len(lit) <= limit {
		return lit, buf
	}
	end := 1
	for i := 1; i < len(lit)-1; {
		i += runeLen(lit[i : len(lit)-1])
		if i > limit-1 {
			break
		}
		end = i
	}
	start := len(buf)
	buf = append(buf, lit[:end]...)
	buf = append(buf, '"')
	return buf[start:], buf
}

// runeLen is the length in bytes of the first character of a string literal's inside, be it written plainly
// or as an escape.
func runeLen(b []byte) int {
	if b[0] != '\\' {
		_, n := utf8.DecodeRune(b)
		return n
	}
	if b[1] != 'u' {
		return 2
	}
	if (b[2]|0x20) == 'd' && isHighSurrogate(b[3]) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' && (b[8]|0x20) == 'd' && isLowSurrogate(b[9]) {
		return 12
	}
	return 6
}

func isHighSurrogate(c byte) bool {
	return c == '8' || c == '9' || c|0x20 == 'a' || c|0x20 == 'b'
}

func isLowSurrogate(c byte) bool { return 'c' <= c|0x20 && c|0x20 <= 'f' }
