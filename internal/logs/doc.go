// Package logs is what all layers share of logging: how many lines one cause may write, and how durations are written.
package logs
