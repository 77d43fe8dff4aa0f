// Package quotas holds tenants to their limits. What they have is counted from the store, so that no counter drifts.
package quotas
