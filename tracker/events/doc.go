// Package events reads what has happened from the streams of all shards, filters it for readers, and knows where each reader continues.
package events
