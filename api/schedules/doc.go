// Package schedules answers the routes of schedules.
package schedules
