package config

import (
	"regexp"
	"strings"
)

const hidden = "xxxxx"

// secretParameter finds values of URL parameters that may be secret, such as Sentinel's own password.
var secretParameter = regexp.MustCompile(`(?i)([?&][a-z_.-]*(?:pass|secret|token)[a-z_.-]*=)[^&#]*`)

// RedactURL hides the password of a URL. It does not parse, because a URL of several hosts, or an invalid one, must not show its password
// either: it removes everything between the first colon and the last @.
func RedactURL(url string) string {
	if scheme, rest, ok := strings.Cut(url, "://"); ok {
		end := len(rest)
		if i := strings.IndexByte(rest, '?'); i >= 0 && strings.LastIndexByte(rest, '@') < i {
			end = i
		}
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
			user, _, withPassword := strings.Cut(rest[:at], ":")
			if withPassword {
				rest = user + ":" + hidden + rest[at:]
			}
		}
		url = scheme + "://" + rest
	}
	return secretParameter.ReplaceAllString(url, "${1}"+hidden)
}

// Redacted returns the field's text in c with every secret hidden, and whether it contained one.
func (f Field) Redacted(c *Config) (text string, changed bool) {
	text = f.Text(c)
	return f.redact(text), f.redact(text) != text
}

func (f Field) redact(text string) string {
	switch f.Secret {
	case "url":
		return RedactURL(text)
	case "all":
		if text != "" {
			return hidden
		}
	}
	return text
}

// redactIn hides a secret value that an error message quotes.
func (f Field) redactIn(message, value string) string {
	if f.Secret == "" || value == "" {
		return message
	}
	return strings.ReplaceAll(message, value, f.redact(value))
}

// Scrub hides the secrets of c in a message, such as an error of a library that quotes its URL.
func (c *Config) Scrub(message string) string {
	for _, f := range Fields() {
		if f.Secret == "" {
			continue
		}
		message = f.redactIn(message, f.Text(c))
	}
	if password := passwordOf(c.Redis); password != "" {
		message = strings.ReplaceAll(message, password, hidden)
	}
	return message
}

// passwordOf returns the part of a URL that RedactURL hides.
func passwordOf(url string) string {
	redacted := RedactURL(url)
	i := strings.Index(redacted, ":"+hidden+"@")
	if i < 0 {
		return ""
	}
	tail := redacted[i+len(hidden)+1:]
	if j := strings.IndexByte(tail, '?'); j >= 0 {
		tail = tail[:j]
	}
	j := strings.Index(url, tail)
	if j <= i {
		return ""
	}
	return url[i+1 : j]
}
