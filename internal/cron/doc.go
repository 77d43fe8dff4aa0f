// Package cron is when a schedule fires: cron expressions in UTC, as the Rust crate of that name reads them. Parsing is strict:
// what the contract does not have is refused with a sentence that says what would be right. It knows nothing of ours.
package cron
