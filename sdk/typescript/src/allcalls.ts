import { seg } from './call.js';
import type { CallOptions } from './calls.js';
import { pages } from './query.js';
import type {
  Index,
  AskedFires,
  BackfillRequest,
  ChangeScheduleRequest,
  CompletedRequest,
  CompletedResponse,
  ExchangeRequest,
  ExchangeResponse,
  CreateScheduleRequest,
  CreateTokenRequest,
  CreateTokenResponse,
  CreateWebhookRequest,
  DeleteWebhookResponse,
  DeletedSchedule,
  DeliveryQuery,
  FiredResponse,
  Health,
  HeartbeatRequest,
  HeartbeatResponse,
  HeartbeatsRequest,
  HeartbeatsResponse,
  NextFires,
  RedeliverRequest,
  RedeliverResponse,
  ReleaseRequest,
  ReleaseResponse,
  RevokeTokensRequest,
  RevokeTokensResponse,
  RotateSecretRequest,
  Schedule,
  ScheduleList,
  ScheduleQuery,
  Scope,
  ScopeList,
  ScopeQuery,
  StartedRequest,
  StartedResponse,
  Stats,
  StatsQuery,
  SweepResponse,
  System,
  UpdateWebhookRequest,
  VerdictCounts,
  VerdictQuery,
  Version,
  Webhook,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookList,
  WebhookQuery,
} from './types.js';
import { WorkCalls } from './workcalls.js';

/** Schedules, webhooks, the system, and the single calls of workers. */
export abstract class AllCalls extends WorkCalls {
  /** Creates a schedule. It is retried after a lost answer only if the request has a scheduleId. */
  createSchedule(request: CreateScheduleRequest, options?: CallOptions): Promise<Schedule> {
    return this.send({ method: 'POST', path: '/v1/schedules', once: !request.scheduleId }, request, options);
  }

  /** One page of schedules. */
  listSchedules(query: ScheduleQuery = {}, options?: CallOptions): Promise<ScheduleList> {
    return this.get('/v1/schedules', query, options);
  }

  /** All schedules, page by page. */
  schedules(query: ScheduleQuery = {}, options?: CallOptions): AsyncGenerator<Schedule, void, undefined> {
    const fetch = (pageToken?: string) => this.listSchedules({ ...query, pageToken }, options);
    return pages(fetch, (page) => page.schedules, query.pageToken);
  }

  /** A schedule. */
  getSchedule(scheduleId: string, options?: CallOptions): Promise<Schedule> {
    return this.get('/v1/schedules/' + seg(scheduleId), undefined, options);
  }

  /** Replaces a schedule's definition. */
  replaceSchedule(scheduleId: string, request: ChangeScheduleRequest, options?: CallOptions): Promise<Schedule> {
    return this.send({ method: 'PUT', path: '/v1/schedules/' + seg(scheduleId) }, request, options);
  }

  /** Changes the given fields of a schedule. */
  changeSchedule(scheduleId: string, request: ChangeScheduleRequest, options?: CallOptions): Promise<Schedule> {
    return this.send({ method: 'PATCH', path: '/v1/schedules/' + seg(scheduleId) }, request, options);
  }

  /** Deletes a schedule. */
  deleteSchedule(scheduleId: string, options?: CallOptions): Promise<DeletedSchedule> {
    return this.send({ method: 'DELETE', path: '/v1/schedules/' + seg(scheduleId) }, undefined, options);
  }

  /** Pauses a schedule. */
  pauseSchedule(scheduleId: string, options?: CallOptions): Promise<Schedule> {
    return this.post('/v1/schedules/' + seg(scheduleId) + '/pause', {}, options);
  }

  /** Ends a pause; missed fires are caught up. */
  resumeSchedule(scheduleId: string, options?: CallOptions): Promise<Schedule> {
    return this.post('/v1/schedules/' + seg(scheduleId) + '/resume', {}, options);
  }

  /** Fires a schedule now. It is not retried after a lost answer. */
  fireSchedule(scheduleId: string, options?: CallOptions): Promise<FiredResponse> {
    return this.send({ method: 'POST', path: '/v1/schedules/' + seg(scheduleId) + '/fire', once: true }, {}, options);
  }

  /** Fires what a schedule would have fired between two times. */
  backfillSchedule(scheduleId: string, request: BackfillRequest, options?: CallOptions): Promise<AskedFires> {
    return this.post('/v1/schedules/' + seg(scheduleId) + '/backfill', request, options);
  }

  /** The next times at which a schedule fires. */
  nextFires(scheduleId: string, count = 1, options?: CallOptions): Promise<NextFires> {
    return this.get('/v1/schedules/' + seg(scheduleId) + '/next', { count }, options);
  }

  /** Creates a webhook. Only this answer includes its secret. */
  createWebhook(request: CreateWebhookRequest, options?: CallOptions): Promise<Webhook> {
    return this.send({ method: 'POST', path: '/v1/webhooks', once: true }, request, options);
  }

  /** One page of webhooks. */
  listWebhooks(query: WebhookQuery = {}, options?: CallOptions): Promise<WebhookList> {
    return this.get('/v1/webhooks', query, options);
  }

  /** All webhooks, page by page. */
  webhooks(query: WebhookQuery = {}, options?: CallOptions): AsyncGenerator<Webhook, void, undefined> {
    const fetch = (pageToken?: string) => this.listWebhooks({ ...query, pageToken }, options);
    return pages(fetch, (page) => page.webhooks, query.pageToken);
  }

  /** A webhook, without its secret. */
  getWebhook(webhookId: string, options?: CallOptions): Promise<Webhook> {
    return this.get('/v1/webhooks/' + seg(webhookId), undefined, options);
  }

  /** Replaces a webhook's definition. */
  updateWebhook(webhookId: string, request: UpdateWebhookRequest, options?: CallOptions): Promise<Webhook> {
    return this.send({ method: 'PUT', path: '/v1/webhooks/' + seg(webhookId) }, request, options);
  }

  /** Deletes a webhook. */
  deleteWebhook(webhookId: string, options?: CallOptions): Promise<DeleteWebhookResponse> {
    return this.send({ method: 'DELETE', path: '/v1/webhooks/' + seg(webhookId) }, undefined, options);
  }

  /** Gives a webhook a new secret, which only this answer includes. It is not retried after a lost answer. */
  rotateSecret(webhookId: string, request: RotateSecretRequest = {}, options?: CallOptions): Promise<Webhook> {
    return this.send({ method: 'POST', path: '/v1/webhooks/' + seg(webhookId) + '/rotate-secret', once: true }, request, options);
  }

  /** Sends a message of type webhook.test. */
  testWebhook(webhookId: string, options?: CallOptions): Promise<WebhookDelivery> {
    return this.send({ method: 'POST', path: '/v1/webhooks/' + seg(webhookId) + '/test', once: true }, {}, options);
  }

  /** One page of a webhook's deliveries, newest first. */
  listDeliveries(webhookId: string, query: DeliveryQuery = {}, options?: CallOptions): Promise<WebhookDeliveryList> {
    return this.get('/v1/webhooks/' + seg(webhookId) + '/deliveries', query, options);
  }

  /** All deliveries of a webhook, page by page, newest first. */
  deliveries(webhookId: string, query: DeliveryQuery = {}, options?: CallOptions): AsyncGenerator<WebhookDelivery, void, undefined> {
    const fetch = (pageToken?: string) => this.listDeliveries(webhookId, { ...query, pageToken }, options);
    return pages(fetch, (page) => page.deliveries, query.pageToken);
  }

  /** Sends deliveries again. */
  redeliver(webhookId: string, request: RedeliverRequest = {}, options?: CallOptions): Promise<RedeliverResponse> {
    return this.post('/v1/webhooks/' + seg(webhookId) + '/redeliver', request, options);
  }

  /** Counts tasks, workers and the events of the last hour. */
  getStats(query: StatsQuery = {}, options?: CallOptions): Promise<Stats> {
    return this.get('/v1/stats', query, options);
  }

  /** Counts the attempts and workers that Lubdub ended. */
  countVerdicts(query: VerdictQuery = {}, options?: CallOptions): Promise<VerdictCounts> {
    return this.get('/v1/stats/verdicts', query, options);
  }

  /** The state of the deployment. */
  getSystem(options?: CallOptions): Promise<System> {
    return this.get('/v1/system', undefined, options);
  }

  /** One page of tenants and workspaces in use. */
  listScopes(query: ScopeQuery = {}, options?: CallOptions): Promise<ScopeList> {
    return this.get('/v1/scopes', query, options);
  }

  /** All tenants and workspaces in use, page by page. */
  scopes(query: ScopeQuery = {}, options?: CallOptions): AsyncGenerator<Scope, void, undefined> {
    const fetch = (pageToken?: string) => this.listScopes({ ...query, pageToken }, options);
    return pages(fetch, (page) => page.scopes, query.pageToken);
  }

  /** Sweeps now. */
  sweep(options?: CallOptions): Promise<SweepResponse> {
    return this.post('/v1/system:sweep', {}, options);
  }

  /** Releases everything the mass-expiry brake is holding. */
  releaseBrake(request: ReleaseRequest = {}, options?: CallOptions): Promise<ReleaseResponse> {
    return this.post('/v1/system:release', request, options);
  }

  /** Creates a token with no more rights than the client's own, and no longer a life. */
  createToken(request: CreateTokenRequest = {}, options?: CallOptions): Promise<CreateTokenResponse> {
    return this.post('/v1/tokens', request, options);
  }

  /** Revokes tokens. */
  revokeTokens(request: RevokeTokensRequest, options?: CallOptions): Promise<RevokeTokensResponse> {
    return this.post('/v1/tokens:revoke', request, options);
  }

  /** Whether the server's process runs. */
  livez(options?: CallOptions): Promise<Health> {
    return this.send({ method: 'GET', path: '/livez', open: true }, undefined, options);
  }

  /** Whether the server is ready; an ApiError with status 503 if it is not. */
  readyz(options?: CallOptions): Promise<Health> {
    return this.send({ method: 'GET', path: '/readyz', open: true }, undefined, options);
  }

  /** The health of the server. */
  healthz(options?: CallOptions): Promise<Health> {
    return this.send({ method: 'GET', path: '/healthz', open: true }, undefined, options);
  }

  /** The version of the server. The SDK's is `version`. */
  serverVersion(options?: CallOptions): Promise<Version> {
    return this.send({ method: 'GET', path: '/version', open: true }, undefined, options);
  }

  /** Links to the server's pages. */
  index(options?: CallOptions): Promise<Index> {
    return this.send({ method: 'GET', path: '/', open: true }, undefined, options);
  }

  /** The server's OpenAPI document. */
  openApi(options?: CallOptions): Promise<Record<string, unknown>> {
    return this.send({ method: 'GET', path: '/openapi.json', open: true }, undefined, options);
  }

  /** Reports that an attempt runs, with its token or its worker's. track and workers call it automatically. */
  started(taskId: string, token: string, request: StartedRequest, options?: CallOptions): Promise<StartedResponse> {
    return this.send({ method: 'POST', path: '/v1/tasks/' + seg(taskId) + '/started', token }, request, options);
  }

  /** Sends a heartbeat of an attempt, with its token or its worker's. track and workers call it automatically. */
  heartbeat(taskId: string, token: string, request: HeartbeatRequest, options?: CallOptions): Promise<HeartbeatResponse> {
    return this.send({ method: 'POST', path: '/v1/tasks/' + seg(taskId) + '/heartbeat', token }, request, options);
  }

  /** Completes an attempt, with its token or its worker's. track and workers call it automatically. */
  completed(taskId: string, token: string, request: CompletedRequest, options?: CallOptions): Promise<CompletedResponse> {
    return this.send({ method: 'POST', path: '/v1/tasks/' + seg(taskId) + '/completed', token }, request, options);
  }

  /** Reports results of up to 100 attempts of a worker, with its token. Each result has its own status. */
  exchange(workerId: string, token: string, request: ExchangeRequest, options?: CallOptions): Promise<ExchangeResponse> {
    return this.send({ method: 'POST', path: '/v1/workers/' + seg(workerId) + '/exchange', token }, request, options);
  }

  /** Sends heartbeats of up to 1,000 attempts. Each includes its token, or token is that of the worker that holds them all. */
  heartbeats(request: HeartbeatsRequest, token = '', options?: CallOptions): Promise<HeartbeatsResponse> {
    return this.send({ method: 'POST', path: '/v1/heartbeats', token, open: token === '' }, request, options);
  }
}
