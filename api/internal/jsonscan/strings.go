package jsonscan

import (
	"encoding/json"
	"unicode/utf8"
)

// Unquote returns the text of a scanned string literal. It allocates only for escapes, which are rare in names, ids and times.
func Unquote(lit []byte, escaped bool) []byte {
	if escaped {
		return unescape(lit)
	}
	return lit[1 : len(lit)-1]
}

func unescape(lit []byte) []byte {
	var s string
	if json.Unmarshal(lit, &s) != nil {
		return nil
	}
	return []byte(s)
}

// Truncate cuts a valid string literal to at most limit bytes including its quotes, but not within an escape, a surrogate pair or a UTF-8
// sequence. If it cuts, the result is a copy.
func Truncate(lit []byte, limit int) []byte {
	if len(lit) <= limit {
		return lit
	}
	end := 1
	for i := 1; i < len(lit)-1; {
		i += runeLen(lit[i : len(lit)-1])
		if i > limit-1 {
			break
		}
		end = i
	}
	cut := make([]byte, 0, end+1)
	return append(append(cut, lit[:end]...), '"')
}

// runeLen returns the length in bytes of the first character inside a string literal, plain or escaped.
func runeLen(b []byte) int {
	if b[0] != '\\' {
		_, n := utf8.DecodeRune(b)
		return n
	}
	if b[1] != 'u' {
		return 2
	}
	if (b[2]|0x20) == 'd' && isHighSurrogate(b[3]) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' && (b[8]|0x20) == 'd' &&
		isLowSurrogate(b[9]) {
		return 12
	}
	return 6
}

func isHighSurrogate(c byte) bool {
	return c == '8' || c == '9' || c|0x20 == 'a' || c|0x20 == 'b'
}

func isLowSurrogate(c byte) bool { return 'c' <= c|0x20 && c|0x20 <= 'f' }

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, `\ufffd`...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
