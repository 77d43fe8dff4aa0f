package schema

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// longestErrorGroup is how many bytes of an error's text identify its group.
const longestErrorGroup = 160

// specific are the parts of a message that differ between failures for the same reason: words with digits, such as numbers, times,
// addresses and ids.
var specific = regexp.MustCompile(`\w*\d\w*([.:-]\w*\d\w*)*`)

// ErrorGroup returns the text by which a worker's failures are grouped: the category of the error and the first line of its message,
// with … for each word that has digits; "": the error has neither.
func ErrorGroup(whole json.RawMessage) string {
	if len(whole) == 0 {
		return ""
	}
	var e struct{ Category, Message string }
	Unmarshal(string(whole), &e)
	line, _, _ := strings.Cut(strings.TrimSpace(e.Message), "\n")
	words := strings.FieldsFunc(firstBytes(line, 4*longestErrorGroup), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	line = specific.ReplaceAllString(strings.Join(words, " "), "…")
	return firstBytes(strings.TrimSpace(e.Category+" "+line), longestErrorGroup)
}

// firstBytes cuts a text to a number of bytes, without splitting characters.
func firstBytes(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }
