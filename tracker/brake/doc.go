// Package brake delays expiry when very many members of a scope fall silent at once. It counts the silent members of a scope over
// all shards, decides which silent attempts and workers may expire and which get a second timeout period, and lets operators release
// them.
package brake
