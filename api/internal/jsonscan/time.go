package jsonscan

import "time"

// ParseTime parses an RFC 3339 time of the years 0 to 9999 in UTC, and returns milliseconds since the epoch.
func ParseTime(b []byte) (ms int64, ok bool) {
	if len(b) < len("2006-01-02T15:04:05Z") || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	year, ok1 := Digits(b[0:4])
	month, ok2 := Digits(b[5:7])
	day, ok3 := Digits(b[8:10])
	hour, ok4 := Digits(b[11:13])
	minute, ok5 := Digits(b[14:16])
	second, ok6 := Digits(b[17:19])
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 ||
		month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	b = b[19:]
	nanos := 0
	if b[0] == '.' {
		i := 1
		for scale := 100_000_000; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
			nanos += int(b[i]-'0') * scale
			scale /= 10
		}
		if i == 1 || i == len(b) {
			return 0, false
		}
		b = b[i:]
	}
	offset := 0
	if len(b) != 1 || b[0] != 'Z' {
		if len(b) != len("+07:00") || b[0] != '+' && b[0] != '-' || b[3] != ':' {
			return 0, false
		}
		h, ok1 := Digits(b[1:3])
		m, ok2 := Digits(b[4:6])
		if !ok1 || !ok2 || h > 23 || m > 59 {
			return 0, false
		}
		offset = (h*60 + m) * 60
		if b[0] == '-' {
			offset = -offset
		}
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC)
	ms = t.UnixMilli() - int64(offset)*1000
	return ms, ms >= firstMs && ms < endMs
}

// The years 0 to 9999 in UTC; other times could not be formatted again.
var (
	firstMs = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	endMs   = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
)

// Digits parses one or more digits; ok reports whether there is nothing else.
func Digits(b []byte) (n int, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// Stamp formats times for the wire. It caches the text of the last second, since many beats are answered per second. The zero value is
// ready; it is not for concurrent use.
type Stamp struct {
	second int64
	text   [len("2006-01-02T15:04:05.")]byte
}

// Append writes t as a JSON string, "2006-01-02T15:04:05.000Z".
func (s *Stamp) Append(dst []byte, t time.Time) []byte {
	ms := t.UnixMilli()
	second, ms := ms/1000, ms%1000
	if ms < 0 {
		second, ms = second-1, ms+1000
	}
	if second != s.second || s.text[0] == 0 {
		time.Unix(second, 0).UTC().AppendFormat(s.text[:0], "2006-01-02T15:04:05.")
		s.second = second
	}
	dst = append(dst, '"')
	dst = append(dst, s.text[:]...)
	return append(dst, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}
