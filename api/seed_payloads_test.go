package api

// The payloads of the worker contract (seed 001), to the letter. Tests send and expect them, and the OpenAPI
// document shows them.

const (
	seedStarted = `{
  "attempt": 1,
  "workerId": "worker-abc123",
  "startedAt": "2025-01-15T10:00:00Z"
}`
	seedStartedOK = `{
  "acknowledged": true,
  "serverTime": "2025-01-15T10:00:01Z"
}`
	seedStartedConflict = `{
  "error": "task_already_terminal",
  "state": "CANCELLED",
  "message": "Task was cancelled before worker started"
}`
	seedHeartbeat = `{
  "attempt": 1,
  "workerId": "worker-abc123",
  "heartbeatAt": "2025-01-15T10:05:00Z",
  "progressPct": 45,
  "message": "Processing partition 5 of 10"
}`
	seedHeartbeatOK = `{
  "acknowledged": true,
  "shouldCancel": false,
  "serverTime": "2025-01-15T10:05:00Z"
}`
	seedHeartbeatCancel = `{
  "acknowledged": true,
  "shouldCancel": true,
  "cancelReason": "user_requested",
  "serverTime": "2025-01-15T10:05:00Z"
}`
	seedHeartbeatExpired = `{
  "error": "task_expired",
  "message": "Task exceeded heartbeat timeout"
}`
	seedSucceeded = `{
  "attempt": 1,
  "workerId": "worker-abc123",
  "outcome": "SUCCEEDED",
  "completedAt": "2025-01-15T10:30:00Z",
  "output": {
    "materializationId": "mat_01HGW5N7XHJM4GX29KZRXQP6NA",
    "rowCount": 1000000,
    "byteSize": 52428800,
    "outputPath": "gs://bucket/tenant/workspace/assets/raw/events/2025-01-15/"
  },
  "metrics": {
    "cpuTimeMs": 45000,
    "peakMemoryBytes": 2147483648,
    "ioReadBytes": 10485760,
    "ioWriteBytes": 52428800
  }
}`
	seedFailed = `{
  "attempt": 1,
  "workerId": "worker-abc123",
  "outcome": "FAILED",
  "completedAt": "2025-01-15T10:30:00Z",
  "error": {
    "category": "USER_CODE",
    "message": "KeyError: 'missing_column'",
    "stackTrace": "Traceback (most recent call last):\n  File ...",
    "retryable": true
  },
  "metrics": {
    "cpuTimeMs": 5000,
    "peakMemoryBytes": 1073741824
  }
}`
	seedCompletedOK = `{
  "acknowledged": true,
  "finalState": "SUCCEEDED",
  "serverTime": "2025-01-15T10:30:01Z"
}`
	seedCompletedConflict = `{
  "error": "attempt_mismatch",
  "expectedAttempt": 2,
  "receivedAttempt": 1,
  "message": "A newer attempt has already completed"
}`
	seedCancelled = `{
  "attempt": 1,
  "workerId": "worker-abc123",
  "outcome": "CANCELLED",
  "completedAt": "2025-01-15T10:15:00Z",
  "cancelledDuringPhase": "processing",
  "partialProgress": {
    "recordsProcessed": 500000,
    "lastCheckpoint": "partition-5"
  }
}`
)

// What this API adds to the seed's answers to a beat.
const (
	heartbeatOK     = `{"acknowledged":true,"shouldCancel":false,"serverTime":"2025-01-15T10:05:00.000Z","nextHeartbeatMs":30000}`
	heartbeatCancel = `{"acknowledged":true,"shouldCancel":true,"cancelReason":"user_requested","serverTime":"2025-01-15T10:05:00.000Z",` +
		`"nextHeartbeatMs":30000}`
)
