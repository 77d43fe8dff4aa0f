// Package cron computes when a schedule fires: cron expressions in UTC, in the format of the Rust crate of that name. Parsing is strict:
// an error describes what would be valid. It knows nothing else of Lubdub.
package cron
