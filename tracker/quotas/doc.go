// Package quotas enforces tenants' limits. Usage is counted from the store, so that no counter drifts.
package quotas
