// Package events is what has happened, as others are told: it reads the streams of all shards, filters them, and knows from
// where each reader goes on.
package events
