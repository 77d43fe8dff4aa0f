package v1

// WebhookFilter says which events a webhook is told of, all of them of its tenant and workspace.
type WebhookFilter struct {
	// Events are types of events, such as task.failed, or families of them, such as task.*. At least one.
	Events []string `json:"events"`
	// Subject, a task, worker or machine, is the only one that it is told of; absent: all are. The same for the rest.
	Subject   string `json:"subject,omitempty"`
	RunID     string `json:"runId,omitempty"`
	Queue     string `json:"queue,omitempty"`
	TaskType  string `json:"taskType,omitempty"`
	WorkerID  string `json:"workerId,omitempty"`
	MachineID string `json:"machineId,omitempty"`
}

// CreateWebhookRequest is the body of POST /v1/webhooks.
type CreateWebhookRequest struct {
	// WebhookID names it; absent: one is made.
	WebhookID string `json:"webhookId,omitempty"`
	// Secret signs its messages: whsec_ and the base64 of 24 to 64 bytes. Absent: one is made.
	Secret string `json:"secret,omitempty"`
	WebhookSettingsItem
}

// UpdateWebhookRequest is the body of PUT /v1/webhooks/{webhookId}: all that the webhook says from now on.
type UpdateWebhookRequest struct {
	WebhookSettingsItem
}

// WebhookSettingsItem is what is said of a webhook.
type WebhookSettingsItem struct {
	// URL is where messages are posted to: https, and http where the deployment allows it.
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
	// Enabled is true unless said. While it is false nothing is collected for it, and what waits is given up.
	Enabled *bool `json:"enabled,omitempty"`
	WebhookFilter
}

// Webhook is where events are posted to.
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
	// DisabledReason is GONE, after a 410; FAILING, after five days of failures; OPERATOR; or null while it is on.
	DisabledReason *string `json:"disabledReason"`
	DisabledAt     Time    `json:"disabledAt"`
	// FailingSince is since when nothing was received though it was tried.
	FailingSince Time `json:"failingSince"`
	// Pending is how many deliveries wait or are under way.
	Pending int `json:"pending"`
	// Dead is how many deliveries were given up, of those that are kept.
	Dead int `json:"dead"`
	// OldSecretsUntil is until when older secrets sign too, null when none does.
	OldSecretsUntil Time `json:"oldSecretsUntil"`
	// Secret is there in the answer that it was made for, and never again.
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
	// Secret is the new one; absent: one is made.
	Secret string `json:"secret,omitempty"`
}

// WebhookDelivery is one message on its way to a webhook.
type WebhookDelivery struct {
	DeliveryID string `json:"deliveryId"`
	// MessageID is the webhook-id that it is sent with, the same at each try.
	MessageID string `json:"messageId"`
	// EventID is the event that it tells of; null: none, it is about the webhook itself.
	EventID *string        `json:"eventId"`
	Type    string         `json:"type"`
	Subject *string        `json:"subject"`
	Status  DeliveryStatus `json:"status"`
	// Attempts is how often it was tried; after ten it is DEAD.
	Attempts      int  `json:"attempts"`
	CreatedAt     Time `json:"createdAt"`
	LastAttemptAt Time `json:"lastAttemptAt"`
	NextAttemptAt Time `json:"nextAttemptAt"`
	// Response is what the last try came to; null: there was none.
	Response *WebhookResponse `json:"response"`
}

// DeliveryStatus is how far a delivery has come.
type DeliveryStatus string

// WebhookResponse is what a try came to.
type WebhookResponse struct {
	// Status is that of the answer; null: there was none.
	Status *int `json:"status"`
	// Error says why there was no answer.
	Error *string `json:"error"`
	// Body is the beginning of the answer's, at most 1 KiB.
	Body string `json:"body"`
	// TookMs is how long it took.
	TookMs int64 `json:"tookMs"`
}

// WebhookDeliveryList is the answer of GET /v1/webhooks/{webhookId}/deliveries.
type WebhookDeliveryList struct {
	// Deliveries stand newest first.
	Deliveries    []WebhookDelivery `json:"deliveries"`
	NextPageToken string            `json:"nextPageToken,omitempty"`
}

// RedeliverRequest is the body of POST /v1/webhooks/{webhookId}/redeliver: one of its fields.
type RedeliverRequest struct {
	// DeliveryID is the one to send again now.
	DeliveryID string `json:"deliveryId,omitempty"`
	// Since has all events since then sent again that are still kept.
	Since Time `json:"since,omitzero"`
	// PageToken goes on where a call by since has ended.
	PageToken string `json:"pageToken,omitempty"`
}

// RedeliverResponse is its answer.
type RedeliverResponse struct {
	// Queued is how many messages wait to be sent by this call.
	Queued int `json:"queued"`
	// NextPageToken is there when the call has not come to the end.
	NextPageToken string `json:"nextPageToken,omitempty"`
	// Gap is the time of which events are not kept any more.
	Gap *EventGap `json:"gap,omitempty"`
}
