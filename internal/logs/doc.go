// Package logs contains what all packages share of logging: a limit of lines for one cause, and the format of durations.
package logs
