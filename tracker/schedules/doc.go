// Package schedules creates tasks at scheduled times: each fire of a schedule creates its task exactly once, no matter how many
// sweepers run and when they die, and missed fires are caught up within a bound.
package schedules
