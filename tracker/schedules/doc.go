// Package schedules makes tasks by the clock: each fire of a schedule creates its task exactly once, however many sweepers there
// are and whenever they die, and fires that were missed are caught up within a bound.
package schedules
