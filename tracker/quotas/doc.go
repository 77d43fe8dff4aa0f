// Package quotas holds tenants to what they may have. What there is it counts from the store, so that no counter drifts.
package quotas
