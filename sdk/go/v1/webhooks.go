package v1

// WebhookFilter selects events for a webhook, from its tenant and workspace.
type WebhookFilter struct {
	// Events are types of events, such as task.failed, or families of them, such as task.*. At least one.
	Events []string `json:"events"`
	// Subject, a task, worker or machine, limits the events to those about it; absent: all. The same applies to the other fields.
	Subject   string `json:"subject,omitempty"`
	RunID     string `json:"runId,omitempty"`
	Queue     string `json:"queue,omitempty"`
	TaskType  string `json:"taskType,omitempty"`
	WorkerID  string `json:"workerId,omitempty"`
	MachineID string `json:"machineId,omitempty"`
}

// CreateWebhookRequest is the body of POST /v1/webhooks.
type CreateWebhookRequest struct {
	// WebhookID names it; absent: one is generated.
	WebhookID string `json:"webhookId,omitempty"`
	// Secret signs its messages: whsec_ and the base64 of 24 to 64 bytes. Absent: one is generated.
	Secret string `json:"secret,omitempty"`
	WebhookSettingsItem
}

// UpdateWebhookRequest is the body of PUT /v1/webhooks/{webhookId}: it replaces the webhook's definition.
type UpdateWebhookRequest struct {
	WebhookSettingsItem
}

// WebhookSettingsItem is the definition of a webhook.
type WebhookSettingsItem struct {
	// URL is where messages are posted: https, and http if the deployment allows it.
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
	// Enabled is true by default. While it is false no events are collected for it, and pending deliveries are dropped.
	Enabled *bool `json:"enabled,omitempty"`
	WebhookFilter
}

// Webhook is a receiver of events.
type Webhook struct {
	WebhookID   string `json:"webhookId"`
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
	Enabled     bool   `json:"enabled"`
	// Managed webhooks come from the deployment's configuration and are changed there only.
	Managed bool `json:"managed"`
	WebhookFilter
	CreatedAt Time `json:"createdAt"`
	UpdatedAt Time `json:"updatedAt"`
	// DisabledReason is GONE, after a 410; FAILING, after five days of failures; OPERATOR; or null while it is enabled.
	DisabledReason *string `json:"disabledReason"`
	DisabledAt     Time    `json:"disabledAt"`
	// FailingSince is since when all deliveries have failed.
	FailingSince Time `json:"failingSince"`
	// Pending is how many deliveries wait or are in flight.
	Pending int `json:"pending"`
	// Dead is how many stored deliveries were abandoned.
	Dead int `json:"dead"`
	// OldSecretsUntil is until when older secrets sign too; null without an older secret.
	OldSecretsUntil Time `json:"oldSecretsUntil"`
	// Secret is present only in the answer that created it.
	Secret string `json:"secret,omitempty"`
}

// WebhookList is the answer of GET /v1/webhooks.
type WebhookList struct {
	Webhooks      []Webhook `json:"webhooks"`
	NextPageToken string    `json:"nextPageToken,omitempty"`
	TotalCount    int       `json:"totalCount"`
}

// DeleteWebhookResponse is the answer of DELETE /v1/webhooks/{webhookId}.
type DeleteWebhookResponse struct {
	WebhookID string `json:"webhookId"`
	Deleted   bool   `json:"deleted"`
}

// RotateSecretRequest is the body of POST /v1/webhooks/{webhookId}/rotate-secret.
type RotateSecretRequest struct {
	// Secret is the new one; absent: one is generated.
	Secret string `json:"secret,omitempty"`
}

// WebhookDelivery is the delivery of one message to a webhook.
type WebhookDelivery struct {
	DeliveryID string `json:"deliveryId"`
	// MessageID is its webhook-id, the same for each try.
	MessageID string `json:"messageId"`
	// EventID is the event in the message; null: the message is about the webhook itself.
	EventID *string        `json:"eventId"`
	Type    string         `json:"type"`
	Subject *string        `json:"subject"`
	Status  DeliveryStatus `json:"status"`
	// Attempts is the number of tries; after ten it is DEAD.
	Attempts      int  `json:"attempts"`
	CreatedAt     Time `json:"createdAt"`
	LastAttemptAt Time `json:"lastAttemptAt"`
	NextAttemptAt Time `json:"nextAttemptAt"`
	// Response is the result of the last try; null: there was none.
	Response *WebhookResponse `json:"response"`
}

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

// WebhookResponse is the result of a try.
type WebhookResponse struct {
	// Status is the answer's; null: there was none.
	Status *int `json:"status"`
	// Error is why there was no answer.
	Error *string `json:"error"`
	// Body is the beginning of the answer's, at most 1 KiB.
	Body string `json:"body"`
	// TookMs is the duration.
	TookMs int64 `json:"tookMs"`
}

// WebhookDeliveryList is the answer of GET /v1/webhooks/{webhookId}/deliveries.
type WebhookDeliveryList struct {
	// Deliveries are newest first.
	Deliveries    []WebhookDelivery `json:"deliveries"`
	NextPageToken string            `json:"nextPageToken,omitempty"`
}

// RedeliverRequest is the body of POST /v1/webhooks/{webhookId}/redeliver: one of its fields.
type RedeliverRequest struct {
	// DeliveryID is the delivery to send again now.
	DeliveryID string `json:"deliveryId,omitempty"`
	// Since sends all events since then again that are still stored.
	Since Time `json:"since,omitzero"`
	// PageToken continues a previous call with since.
	PageToken string `json:"pageToken,omitempty"`
}

// RedeliverResponse is its answer.
type RedeliverResponse struct {
	// Queued is how many messages this call queued.
	Queued int `json:"queued"`
	// NextPageToken is present if there are more.
	NextPageToken string `json:"nextPageToken,omitempty"`
	// Gap is the range of events that are no longer stored.
	Gap *EventGap `json:"gap,omitempty"`
}
