// Written by scripts/reference.ts from the routes of the service. Change it there, then run: node scripts/run.mjs scripts/reference.ts

export interface Schemas {
  AlertRule: { rule: 'destination_failing' | 'destination_held' | 'deliveries_expired' | 'backlog_growing' | 'source_silent' | 'source_volume_unusual' | 'messages_rejected' | 'plan_violated' | 'quarantine_expiring' | 'disk_almost_full' | 'node_lost' | 'deliveries_failed' | 'attempts_failing' | 'deliveries_delayed' | 'destination_stopped' | 'messages_quarantined' | 'ledger_unbalanced' | 'versions_differ' | 'order_backlog_growing' | 'warehouse_tables'; event: string; closedEvent: string; subject: 'source' | 'destination' | 'node' | 'service'; description: string; sentences: string[]; enabled: boolean; notify: boolean; settings: Record<string, number>; options: Record<string, { default: number; min: number; max: number; description: string }>; exceptions: ({ subjectId: string; subjectName: string | null; enabled: boolean; notify: boolean; settings: Record<string, number> })[] }
  Alerts: { rules: Schemas['AlertRule'][]; destinationIds: string[]; openIncidents: number; mutes: number }
  Attempt: { url: string; address: string | null; startedAt: string; status: number | null; reason: string | null; error: string | null; timings: { dnsMs: number | null; connectMs: number | null; tlsMs: number | null; firstByteMs: number | null; totalMs: number }; responseStart: string | null; version: number; logs: string | null; subscription: string | null; method: string | null; load: { id: string; tables: { table: string; rows: number }[]; rows: number; bytes: number; durationMs: number } | null; request?: { headers: Record<string, string>; body: string } | undefined }
  AuditEntry: { id: string; at: string; actor: { id: string; name: string; type: 'person' | 'token' | 'service'; subject?: string | undefined; email?: string | null | undefined; owner: ({ subject: string; email: string | null }) | null }; action: string; subject: string | null; before: Record<string, unknown> | null; after: Record<string, unknown> | null }
  Backup: { id: string; state: 'copying' | 'ready' | 'failed'; doneBytes: number; totalBytes: number; error: string | null; createdAt: string }
  CatalogEntry: { slug: string; name: string; title: string; description: string; category: 'analytics' | 'messaging' | 'crm' | 'advertising' | 'audiences' | 'support' | 'experiments' | 'personalization' | 'loyalty' | 'billing' | 'storage' | 'data-quality' | 'developer' | 'other'; keywords: string[]; popularity: number | null; auth: 'none' | 'custom' | 'basic' | 'oauth2'; actionCount: number; presetCount: number; batch: boolean; available: boolean; problem: string | null; needs: string | null; requiredSettingCount: number }
  CatalogInstallation: { state: 'missing' | 'installing' | 'installed' | 'failed'; done: number; total: number; error: string | null }
  CatalogIntegration: { slug: string; name: string; title: string; description: string; category: 'analytics' | 'messaging' | 'crm' | 'advertising' | 'audiences' | 'support' | 'experiments' | 'personalization' | 'loyalty' | 'billing' | 'storage' | 'data-quality' | 'developer' | 'other'; keywords: string[]; popularity: number | null; auth: 'none' | 'custom' | 'basic' | 'oauth2'; actionCount: number; presetCount: number; batch: boolean; available: boolean; problem: string | null; needs: string | null; requiredSettingCount: number; deletes: boolean; settings: Record<string, unknown>; actions: ({ slug: string; name: string; description: string; defaultSubscription: string | null; batch: boolean; syncMode: Record<string, unknown> | null; fields: Record<string, unknown> })[]; presets: ({ name: string; action: string; subscribe: string; mapping: Record<string, unknown>; type: 'automatic' | 'specificEvent' })[] }
  ConditionalFilter: { name?: string | null | undefined; enabled?: boolean | undefined; when?: string | null | undefined; action: 'drop' | 'sample' | 'drop_properties' | 'allow_properties'; share?: number | null | undefined; path?: string | null | undefined; fields?: Record<string, string[]> | null | undefined }
  CountedViolation: { planId: string; sourceId: string; violation: ({ rule: string; code: 'unplanned_event' | 'missing_property' | 'unplanned_property' | 'wrong_type' | 'wrong_value' | 'wrong_format' | 'out_of_range' | 'other'; path: string; expected: string; found: string }) | null; total: number; firstSeen: string; lastSeen: string; hours: number[]; days: number[]; messageIds: string[] }
  DeletionSummary: { id: string; createdAt: string; suppress: boolean; userCount: number; sourceIds: string[]; state: 'pending' | 'running' | 'finished' | 'failed'; purged: number }
  Delivery: { id: string; messageId: string | null; storedMessageId: string; type: string | null; event: string | null; userId: string | null; anonymousId: string | null; destinationId: string; state: 'pending' | 'delivered' | 'failed' | 'expired' | 'cancelled'; reason: string | null; lastReason: string | null; waitingFor: ({ messageId: string | null; key: string | null }) | null; attemptCount: number; replay: boolean; replayOf: string | null; replayJobId: string | null; replayedBy: string | null; nextAttemptAt: string | null; expiresAt: string | null; settledAt: string | null }
  Destination: ({ type: 'webhook'; id: string; name: string; aliases: string[]; origin: string | null; enabled: boolean; paused: boolean; sourceIds: string[]; batch: { size: number; bytes: number; lingerMs: number }; retry: { windowMs: number; initialMs: number; maxMs: number; factor: number; retryStatuses: number[]; failStatuses: number[] }; retryWindowMs: number; deadLetter: string | null; maxInFlight: number; order: ({ by?: string | undefined; onFailure?: 'skip' | 'hold' | undefined; maxWaiting?: number | undefined }) | null; includeViolations: boolean; historical: boolean; filter: { types?: { allow?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined; deny?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined } | undefined; events?: { allow?: string[] | undefined; deny?: string[] | undefined } | undefined }; conditionalFilters: Schemas['ConditionalFilter'][]; subscribe: string | null; version: number; createdAt: string; timeoutMs: number; urls: string[]; headers: Record<string, string>; hasSharedSecret: boolean; hasSigningSecrets: boolean; signingSecretCount: number; request: ({ method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined; path?: string | undefined; headers: Record<string, string>; body?: Record<string, unknown> | unknown[] | null | undefined; format?: ('json' | 'form' | 'text' | 'ndjson') | { wrap: string } | undefined }) | null; transformation: { code: string; timeoutMs: number; memoryMb: number } | null; secrets: Record<string, string>; auth: { type: 'basic'; username: string; hasPassword: boolean } | { type: 'bearer'; hasToken: boolean } | ({ type: 'oauth2'; tokenUrl: string; clientId: string; hasClientSecret: boolean; scope: string | null; audience: string | null; credentials: 'basic' | 'body' }) | null; tls: ({ certificate: string | null; subject: string | null; expiresAt: string | null; hasPrivateKey: boolean; ca: string | null }) | null; shared?: boolean | undefined; warnings?: ({ code: 'no_subscription' | 'hook_outputs_missing' | 'integration_problem'; field: string; message: string })[] | undefined }) | ({ type: 'integration'; id: string; name: string; aliases: string[]; origin: string | null; enabled: boolean; paused: boolean; sourceIds: string[]; batch: { size: number; bytes: number; lingerMs: number }; retry: { windowMs: number; initialMs: number; maxMs: number; factor: number; retryStatuses: number[]; failStatuses: number[] }; retryWindowMs: number; deadLetter: string | null; maxInFlight: number; order: ({ by?: string | undefined; onFailure?: 'skip' | 'hold' | undefined; maxWaiting?: number | undefined }) | null; includeViolations: boolean; historical: boolean; filter: { types?: { allow?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined; deny?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined } | undefined; events?: { allow?: string[] | undefined; deny?: string[] | undefined } | undefined }; conditionalFilters: Schemas['ConditionalFilter'][]; subscribe: string | null; version: number; createdAt: string; timeoutMs: number; integration: string; integrationName: string; integrationTitle: string; integrationAliases: string[]; settings: Record<string, unknown>; secretSettings: string[]; subscriptions: Schemas['Subscription'][]; shared?: boolean | undefined; warnings?: ({ code: 'no_subscription' | 'hook_outputs_missing' | 'integration_problem'; field: string; message: string })[] | undefined }) | ({ type: 'warehouse'; id: string; name: string; aliases: string[]; origin: string | null; enabled: boolean; paused: boolean; sourceIds: string[]; batch: { size: number; bytes: number; lingerMs: number }; retry: { windowMs: number; initialMs: number; maxMs: number; factor: number; retryStatuses: number[]; failStatuses: number[] }; retryWindowMs: number; deadLetter: string | null; maxInFlight: number; order: ({ by?: string | undefined; onFailure?: 'skip' | 'hold' | undefined; maxWaiting?: number | undefined }) | null; includeViolations: boolean; historical: boolean; filter: { types?: { allow?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined; deny?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined } | undefined; events?: { allow?: string[] | undefined; deny?: string[] | undefined } | undefined }; conditionalFilters: Schemas['ConditionalFilter'][]; subscribe: string | null; version: number; createdAt: string; timeoutMs: number; warehouse: { engine: 'parquet' | 'postgres' | 'clickhouse'; url: string; endpoint?: string | null | undefined; region?: string | null | undefined; accessKeyId?: string | null | undefined; pathStyle?: boolean | undefined; schema?: string | null | undefined; database?: string | undefined; user?: string | undefined; adopt: boolean; keepDays: number | null }; load: { everyMs: number; maxRows: number; maxBytes: number }; secretSettings: string[]; shared?: boolean | undefined; warnings?: ({ code: 'no_subscription' | 'hook_outputs_missing' | 'integration_problem'; field: string; message: string })[] | undefined })
  DestinationSummary: { id: string; name: string; enabled: boolean; paused: boolean; filtered: boolean; sourceIds: string[]; shared?: boolean | undefined }
  DestinationVersion: { version: number; current: boolean; createdAt: string; actor: { id: string; name: string } | null; changed: string[]; restoredFrom: number | null; request: ({ method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined; path?: string | undefined; headers: Record<string, string>; body?: Record<string, unknown> | unknown[] | null | undefined; format?: ('json' | 'form' | 'text' | 'ndjson') | { wrap: string } | undefined }) | null; transformation: { code: string; timeoutMs: number; memoryMb: number } | null; subscriptions: Schemas['Subscription'][] | null }
  FailureCause: { destinationId: string; state: 'failed' | 'expired' | 'cancelled'; reason: string | null; status: number | null; sentence: string; count: number; firstAt: string; lastAt: string; deliveryId: string; partial: boolean }
  FieldChoices: { choices: ({ value: string | number | boolean; label: string; description?: string | undefined })[]; nextPage: string | null; error: { code: string; message: string } | null }
  Incident: { id: string; rule: 'destination_failing' | 'destination_held' | 'deliveries_expired' | 'backlog_growing' | 'source_silent' | 'source_volume_unusual' | 'messages_rejected' | 'plan_violated' | 'quarantine_expiring' | 'disk_almost_full' | 'node_lost' | 'deliveries_failed' | 'attempts_failing' | 'deliveries_delayed' | 'destination_stopped' | 'messages_quarantined' | 'ledger_unbalanced' | 'versions_differ' | 'order_backlog_growing' | 'warehouse_tables'; event: string; state: 'starting' | 'open' | 'closed'; severity: 'critical' | 'warning' | 'notice'; subject: { kind: 'source' | 'destination' | 'node' | 'service'; id: string; name: string }; since: string; openedAt: string; closedAt: string | null; observedAt: string; message: string; cause: string | null; measure: ({ label: string; value: number | null; readings: { at: string; value: number }[] }) | null; acknowledged: ({ at: string; by: { id: string; name: string }; name: string; note: string | null }) | null; actions: ({ action: 'retry' | 'replay' | 'resume'; destinationId: string; states: ('failed' | 'expired')[] })[]; closedMessage: string | null; link: string; details: Record<string, unknown>; muted: boolean; openedMessageId: string | null; closedMessageId: string | null }
  IncidentDetail: { id: string; rule: 'destination_failing' | 'destination_held' | 'deliveries_expired' | 'backlog_growing' | 'source_silent' | 'source_volume_unusual' | 'messages_rejected' | 'plan_violated' | 'quarantine_expiring' | 'disk_almost_full' | 'node_lost' | 'deliveries_failed' | 'attempts_failing' | 'deliveries_delayed' | 'destination_stopped' | 'messages_quarantined' | 'ledger_unbalanced' | 'versions_differ' | 'order_backlog_growing' | 'warehouse_tables'; event: string; state: 'starting' | 'open' | 'closed'; severity: 'critical' | 'warning' | 'notice'; subject: { kind: 'source' | 'destination' | 'node' | 'service'; id: string; name: string }; since: string; openedAt: string; closedAt: string | null; observedAt: string; message: string; cause: string | null; measure: ({ label: string; value: number | null; readings: { at: string; value: number }[] }) | null; acknowledged: ({ at: string; by: { id: string; name: string }; name: string; note: string | null }) | null; actions: ({ action: 'retry' | 'replay' | 'resume'; destinationId: string; states: ('failed' | 'expired')[] })[]; closedMessage: string | null; link: string; details: Record<string, unknown>; muted: boolean; openedMessageId: string | null; closedMessageId: string | null; timeline: ({ at: string; what: 'began' | 'opened' | 'told' | 'acknowledged' | 'closed'; sentence: string; messageId: string | null })[] }
  Installation: { version: string | null; startedAt: string | null; now: string; storeKind: 'sqlite' | 'postgresql' | null; store: string | null; retentionDays: number | null; backups: boolean; command: string }
  LakeTable: { sourceId: string; schema: string; table: string; columns: { name: string; type: string }[] }
  LoginMethods: { token: true; oidc: ({ name: string; problem?: { reason: string; message: string; advice: string; since: string } | undefined }) | null }
  Mute: { id: string; rule: 'destination_failing' | 'destination_held' | 'deliveries_expired' | 'backlog_growing' | 'source_silent' | 'source_volume_unusual' | 'messages_rejected' | 'plan_violated' | 'quarantine_expiring' | 'disk_almost_full' | 'node_lost' | 'deliveries_failed' | 'attempts_failing' | 'deliveries_delayed' | 'destination_stopped' | 'messages_quarantined' | 'ledger_unbalanced' | 'versions_differ' | 'order_backlog_growing' | 'warehouse_tables' | null; sourceId: string | null; destinationId: string | null; until: string; note: string | null; createdAt: string; createdBy: { id: string; name: string } }
  Node: { name: string; version: string; startedAt: string | null; seenAt: string; current: boolean }
  OAuthApp: { id: string; name: string; sourceIds: string[]; keys: Schemas['OAuthKey'][]; tokensRevokedBefore: string | null; createdAt: string }
  OAuthKey: { id: string; publicKeyPem: string; createdAt: string }
  OrderedKey: { key: string | null; state: 'waiting' | 'held'; waiting: number; since: string; skipping: boolean; head: { messageId: string | null; deliveryId: string; state: 'pending' | 'failed' | 'expired'; attempts: number; reason: string | null; reasonSentence: string | null; nextAttemptAt: string | null } }
  Person: { id: string; subject: string; email: string | null; name: string | null; role: 'viewer' | 'editor' | 'admin'; sources: 'all' | string[]; hasAccess: boolean; lastSeenAt: string; checkedAt: string; sessions: number }
  PlanRule: { type: 'track' | 'identify' | 'page' | 'screen' | 'group'; event?: string | undefined; description?: string | undefined; owner?: string | undefined; mode?: 'observe' | 'quarantine' | 'strip' | undefined; schema: Record<string, unknown> }
  PreviewCounts: { messages: number; sent: number; skipped: number; dropped: number; failed: number; notRun: number }
  PrivacyRule: { path: string; action: 'drop' | 'hash' | 'mask' }
  SavedQuery: { id: string; name: string; query: string; savedAt: string; savedBy: { id: string; name: string } }
  Session: { actor: { id: string; name: string; type: 'person' | 'token' | 'service'; subject?: string | undefined; email?: string | null | undefined; owner?: { subject: string; email: string | null } | undefined }; role: 'viewer' | 'editor' | 'admin'; sources: 'all' | string[]; expiresAt: string | null; dataSince: string | null }
  Source: { id: string; name: string; description: string | null; enabled: boolean; requireOAuth: boolean; writeKeys: string[]; origin: string | null; privacy: Schemas['PrivacyRule'][]; builtIn: boolean; createdAt: string }
  Subscription: { id: string; name: string; action: string; subscribe: string; enabled: boolean; mapping: Record<string, unknown>; syncMode: string | null }
  Suppression: { userId: string; sourceId: string; since: string }
  Token: { id: string; name: string; role: 'viewer' | 'editor' | 'admin'; sources: 'all' | string[]; expiresAt: string | null; owner: ({ subject: string; email: string | null }) | null; createdAt: string | null; lastUsedAt: string | null }
  TrackingPlan: { id: string; name: string; unplanned: 'allow' | 'observe' | 'quarantine'; rules: Schemas['PlanRule'][]; description: string | null; sourceIds: string[]; version: number; createdAt: string }
  WarehouseCheck: { problem: { code: string; message: string } | null; steps: ({ step: string; ok: boolean; error: string | null })[]; version: string | null; messages: number; tables: ({ sourceId: string | null; schema: string; table: string; rows: number; columnCount: number; columns: ({ name: string; type: string; path: string; example: string | null })[]; unfit: number })[] }
  WarehouseLoad: { id: string; sourceId: string; at: string; messages: number; tables: number; rows: number; bytes: number; durationMs: number; failed: string[] }
  WarehouseTable: { sourceId: string; schema: string; table: string; columns: ({ name: string; type: string; path: string; since: string | null; unfit: { count: number; types: { type: string; count: number }[] } })[]; unfit: { path: string; type: string; count: number }[]; rows: number; lastLoadAt: string | null }
  WarehouseUpkeep: { state: 'never' | 'waiting' | 'running' | 'done'; startedAt: string | null; finishedAt: string | null; changed: number; problems: { code: string; message: string }[]; error: string | null }
}

/** Requests and responses, by method and path. */
export interface Operations {
  /** List sources, oldest first */
  'GET /api/sources': {
    query: { search?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['Source'][]; next: string | null }
  }
  /** Create a source */
  'POST /api/sources': {
    query: { uniqueName?: boolean | undefined }
    body: { name: string; description?: string | null | undefined; enabled?: boolean | undefined; requireOAuth?: boolean | undefined; writeKeys?: string[] | undefined; origin?: string | null | undefined; privacy?: Schemas['PrivacyRule'][] | undefined }
    answer: Schemas['Source']
  }
  /** Retrieve a source */
  'GET /api/sources/{id}': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['Source']
  }
  /** Update a source */
  'PATCH /api/sources/{id}': {
    query: Record<string, never>
    body: { name?: string | undefined; description?: string | null | undefined; enabled?: boolean | undefined; requireOAuth?: boolean | undefined; writeKeys?: string[] | undefined; origin?: string | null | undefined; privacy?: Schemas['PrivacyRule'][] | null | undefined }
    answer: Schemas['Source']
  }
  /** Delete a source */
  'DELETE /api/sources/{id}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Add a write key to a source */
  'POST /api/sources/{id}/write-keys': {
    query: Record<string, never>
    body: { key?: string | undefined }
    answer: { id: string; name: string; description: string | null; enabled: boolean; requireOAuth: boolean; writeKeys: string[]; origin: string | null; privacy: Schemas['PrivacyRule'][]; builtIn: boolean; createdAt: string; key: string }
  }
  /** Remove a write key from a source */
  'DELETE /api/sources/{id}/write-keys/{key}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Preview privacy rules */
  'POST /api/sources/{id}/privacy/preview': {
    query: Record<string, never>
    body: { privacy?: Schemas['PrivacyRule'][] | undefined; message?: Record<string, unknown> | undefined; limit?: number | undefined }
    answer: { data: ({ messageId: string | null; before: Record<string, unknown>; after: Record<string, unknown> })[]; rules: ({ path: string; action: 'drop' | 'hash' | 'mask'; messages: number })[] }
  }
  /** Learn a plan from the messages of a source */
  'POST /api/plans/learn': {
    query: Record<string, never>
    body: { source: string; from?: string | undefined; name?: string | undefined }
    answer: { plan: Record<string, unknown>; yaml: string; messages: number; complete: boolean; leftOut: { events: number; messages: number } }
  }
  /** List destinations, oldest first */
  'GET /api/destinations': {
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['Destination'][]; next: string | null }
  }
  /** Create a destination */
  'POST /api/destinations': {
    query: { uniqueName?: boolean | undefined; allowDuplicate?: boolean | undefined }
    body: { type?: 'webhook' | 'integration' | 'warehouse' | undefined; name: string; aliases?: string[] | undefined; origin?: string | null | undefined; enabled?: boolean | undefined; paused?: boolean | undefined; sourceIds?: string[] | undefined; batch?: { size?: number | undefined; bytes?: number | undefined; lingerMs?: number | undefined } | undefined; retry?: { windowMs?: number | undefined; initialMs?: number | undefined; maxMs?: number | undefined; factor?: number | undefined; retryStatuses?: number[] | undefined; failStatuses?: number[] | undefined } | undefined; retryWindowMs?: number | undefined; deadLetter?: string | null | undefined; maxInFlight?: number | undefined; order?: ({ by?: string | undefined; onFailure?: 'skip' | 'hold' | undefined; maxWaiting?: number | undefined }) | null | undefined; includeViolations?: boolean | undefined; historical?: boolean | undefined; filter?: { types?: { allow?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined; deny?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined } | undefined; events?: { allow?: string[] | undefined; deny?: string[] | undefined } | undefined } | undefined; conditionalFilters?: Schemas['ConditionalFilter'][] | undefined; subscribe?: string | null | undefined; integration?: string | undefined; settings?: Record<string, unknown> | undefined; subscriptions?: ({ id?: string | undefined; name?: string | undefined; action: string; subscribe: string; enabled?: boolean | undefined; mapping?: Record<string, unknown> | undefined; syncMode?: string | null | undefined })[] | undefined; warehouse?: ({ engine: 'parquet'; url: string; endpoint?: string | null | undefined; region?: string | null | undefined; accessKeyId?: string | null | undefined; secretAccessKey?: string | null | undefined; pathStyle?: boolean | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | ({ engine: 'postgres'; url: string; schema?: string | null | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | ({ engine: 'clickhouse'; url: string; database: string; user: string; password?: string | null | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | undefined; load?: { everyMs?: number | undefined; maxRows?: number | undefined; maxBytes?: number | undefined } | undefined; timeoutMs?: number | undefined; urls?: string[] | undefined; headers?: Record<string, string> | undefined; sharedSecret?: string | null | undefined; signingSecrets?: string[] | undefined; request?: ({ method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined; path?: string | undefined; headers?: Record<string, string> | undefined; body?: Record<string, unknown> | unknown[] | null | undefined; format?: ('json' | 'form' | 'text' | 'ndjson') | { wrap: string } | undefined }) | null | undefined; transformation?: ({ code: string; timeoutMs?: number | undefined; memoryMb?: number | undefined }) | null | undefined; secrets?: Record<string, string | null> | undefined; auth?: ({ type: 'basic'; username: string; password?: string | undefined }) | ({ type: 'bearer'; token?: string | undefined }) | ({ type: 'oauth2'; tokenUrl: string; clientId: string; clientSecret?: string | undefined; scope?: string | null | undefined; audience?: string | null | undefined; credentials?: 'basic' | 'body' | undefined }) | null | undefined; tls?: ({ certificate?: string | null | undefined; privateKey?: string | null | undefined; ca?: string | null | undefined }) | null | undefined }
    answer: Schemas['Destination']
  }
  /** Retrieve the health of all destinations */
  'GET /api/destinations/health': {
    query: Record<string, never>
    body: undefined
    answer: { data: ({ destinationId: string; breaker: 'closed' | 'open' | 'probing'; openSince: string | null; failure: { reason: string; error: string } | null; mostFrequentFailure: ({ reason: string; error: string; attempts: number; responseStart: string | null }) | null; inFlight: number; success: number | null; latencyMs: { p50: number; p95: number; p99: number } | null; held: string | null; failingTables: { table: string; error: string; since: string }[]; pending: number; oldestPendingAt: string | null; nextAttemptAt: string | null; nextExpiryAt: string | null })[]; next: string | null }
  }
  /** List all destinations without most settings, oldest first */
  'GET /api/destinations/summary': {
    query: Record<string, never>
    body: undefined
    answer: { data: Schemas['DestinationSummary'][]; next: string | null }
  }
  /** Retrieve a destination */
  'GET /api/destinations/{id}': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['Destination']
  }
  /** Update a destination */
  'PATCH /api/destinations/{id}': {
    query: Record<string, never>
    body: { type?: 'webhook' | 'integration' | 'warehouse' | undefined; name?: string | undefined; aliases?: string[] | undefined; origin?: string | null | undefined; enabled?: boolean | undefined; paused?: boolean | undefined; sourceIds?: string[] | undefined; batch?: { size?: number | undefined; bytes?: number | undefined; lingerMs?: number | undefined } | undefined; retry?: ({ windowMs?: number | undefined; initialMs?: number | undefined; maxMs?: number | undefined; factor?: number | undefined; retryStatuses?: number[] | undefined; failStatuses?: number[] | undefined }) | null | undefined; retryWindowMs?: number | undefined; deadLetter?: string | null | undefined; maxInFlight?: number | undefined; order?: ({ by?: string | undefined; onFailure?: 'skip' | 'hold' | undefined; maxWaiting?: number | undefined }) | null | undefined; includeViolations?: boolean | undefined; historical?: boolean | undefined; filter?: { types?: { allow?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined; deny?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined } | undefined; events?: { allow?: string[] | undefined; deny?: string[] | undefined } | undefined } | undefined; conditionalFilters?: Schemas['ConditionalFilter'][] | undefined; subscribe?: string | null | undefined; integration?: string | undefined; settings?: Record<string, unknown> | undefined; subscriptions?: ({ id?: string | undefined; name?: string | undefined; action: string; subscribe: string; enabled?: boolean | undefined; mapping?: Record<string, unknown> | undefined; syncMode?: string | null | undefined })[] | undefined; warehouse?: ({ engine: 'parquet'; url: string; endpoint?: string | null | undefined; region?: string | null | undefined; accessKeyId?: string | null | undefined; secretAccessKey?: string | null | undefined; pathStyle?: boolean | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | ({ engine: 'postgres'; url: string; schema?: string | null | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | ({ engine: 'clickhouse'; url: string; database: string; user: string; password?: string | null | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | undefined; load?: { everyMs?: number | undefined; maxRows?: number | undefined; maxBytes?: number | undefined } | undefined; timeoutMs?: number | undefined; urls?: string[] | undefined; headers?: Record<string, string> | undefined; sharedSecret?: string | null | undefined; signingSecrets?: string[] | undefined; request?: ({ method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined; path?: string | undefined; headers?: Record<string, string> | undefined; body?: Record<string, unknown> | unknown[] | null | undefined; format?: ('json' | 'form' | 'text' | 'ndjson') | { wrap: string } | undefined }) | null | undefined; transformation?: ({ code: string; timeoutMs?: number | undefined; memoryMb?: number | undefined }) | null | undefined; secrets?: Record<string, string | null> | undefined; auth?: ({ type: 'basic'; username: string; password?: string | undefined }) | ({ type: 'bearer'; token?: string | undefined }) | ({ type: 'oauth2'; tokenUrl: string; clientId: string; clientSecret?: string | undefined; scope?: string | null | undefined; audience?: string | null | undefined; credentials?: 'basic' | 'body' | undefined }) | null | undefined; tls?: ({ certificate?: string | null | undefined; privateKey?: string | null | undefined; ca?: string | null | undefined }) | null | undefined; version?: number | undefined }
    answer: Schemas['Destination']
  }
  /** Delete a destination */
  'DELETE /api/destinations/{id}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Send a test message to a destination */
  'POST /api/destinations/{id}/test': {
    query: Record<string, never>
    body: { type?: 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | 'delete' | undefined }
    answer: { success: boolean; message: Record<string, unknown>; request: { headers: Record<string, string>; body: string } | null; attempts: Schemas['Attempt'][] }
  }
  /** Attempt the pending deliveries of a destination now */
  'POST /api/destinations/{id}/retry': {
    query: Record<string, never>
    body: undefined
    answer: { pending: number }
  }
  /** Retrieve the health of a destination */
  'GET /api/destinations/{id}/health': {
    query: Record<string, never>
    body: undefined
    answer: { breaker: 'closed' | 'open' | 'probing'; openSince: string | null; failure: { reason: string; error: string } | null; mostFrequentFailure: ({ reason: string; error: string; attempts: number; responseStart: string | null }) | null; inFlight: number; success: number | null; latencyMs: { p50: number; p95: number; p99: number } | null; held: string | null; failingTables: { table: string; error: string; since: string }[]; pending: number; oldestPendingAt: string | null; nextAttemptAt: string | null; nextExpiryAt: string | null; ledger: { owed: number; delivered: number; pending: number; failed: number; expired: number; cancelled: number }; content: { version: number; failing: ({ reason: 'transformation_failed' | 'mapping_failed'; error: string; sinceVersion: number; lastAt: string }) | null }; urls: ({ url: string; inFlight: number; success: number | null; latencyMs: { p50: number; p95: number; p99: number } | null })[] }
  }
  /** List the tables of a warehouse */
  'GET /api/destinations/{id}/tables': {
    query: Record<string, never>
    body: undefined
    answer: { data: Schemas['WarehouseTable'][]; next: string | null }
  }
  /** List the latest loads of a warehouse */
  'GET /api/destinations/{id}/loads': {
    query: Record<string, never>
    body: undefined
    answer: { data: Schemas['WarehouseLoad'][]; next: string | null }
  }
  /** Load waiting messages into a warehouse now */
  'POST /api/destinations/{id}/load': {
    query: Record<string, never>
    body: undefined
    answer: { pending: number }
  }
  /** Show where lakes in folders can be */
  'GET /api/warehouse/folder': {
    query: Record<string, never>
    body: undefined
    answer: { url: string | null }
  }
  /** Test the settings of a warehouse before it is created */
  'POST /api/warehouse/check': {
    query: Record<string, never>
    body: { type?: 'webhook' | 'integration' | 'warehouse' | undefined; name: string; aliases?: string[] | undefined; origin?: string | null | undefined; enabled?: boolean | undefined; paused?: boolean | undefined; sourceIds?: string[] | undefined; batch?: { size?: number | undefined; bytes?: number | undefined; lingerMs?: number | undefined } | undefined; retry?: { windowMs?: number | undefined; initialMs?: number | undefined; maxMs?: number | undefined; factor?: number | undefined; retryStatuses?: number[] | undefined; failStatuses?: number[] | undefined } | undefined; retryWindowMs?: number | undefined; deadLetter?: string | null | undefined; maxInFlight?: number | undefined; order?: ({ by?: string | undefined; onFailure?: 'skip' | 'hold' | undefined; maxWaiting?: number | undefined }) | null | undefined; includeViolations?: boolean | undefined; historical?: boolean | undefined; filter?: { types?: { allow?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined; deny?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined } | undefined; events?: { allow?: string[] | undefined; deny?: string[] | undefined } | undefined } | undefined; conditionalFilters?: Schemas['ConditionalFilter'][] | undefined; subscribe?: string | null | undefined; integration?: string | undefined; settings?: Record<string, unknown> | undefined; subscriptions?: ({ id?: string | undefined; name?: string | undefined; action: string; subscribe: string; enabled?: boolean | undefined; mapping?: Record<string, unknown> | undefined; syncMode?: string | null | undefined })[] | undefined; warehouse?: ({ engine: 'parquet'; url: string; endpoint?: string | null | undefined; region?: string | null | undefined; accessKeyId?: string | null | undefined; secretAccessKey?: string | null | undefined; pathStyle?: boolean | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | ({ engine: 'postgres'; url: string; schema?: string | null | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | ({ engine: 'clickhouse'; url: string; database: string; user: string; password?: string | null | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | undefined; load?: { everyMs?: number | undefined; maxRows?: number | undefined; maxBytes?: number | undefined } | undefined; timeoutMs?: number | undefined; urls?: string[] | undefined; headers?: Record<string, string> | undefined; sharedSecret?: string | null | undefined; signingSecrets?: string[] | undefined; request?: ({ method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined; path?: string | undefined; headers?: Record<string, string> | undefined; body?: Record<string, unknown> | unknown[] | null | undefined; format?: ('json' | 'form' | 'text' | 'ndjson') | { wrap: string } | undefined }) | null | undefined; transformation?: ({ code: string; timeoutMs?: number | undefined; memoryMb?: number | undefined }) | null | undefined; secrets?: Record<string, string | null> | undefined; auth?: ({ type: 'basic'; username: string; password?: string | undefined }) | ({ type: 'bearer'; token?: string | undefined }) | ({ type: 'oauth2'; tokenUrl: string; clientId: string; clientSecret?: string | undefined; scope?: string | null | undefined; audience?: string | null | undefined; credentials?: 'basic' | 'body' | undefined }) | null | undefined; tls?: ({ certificate?: string | null | undefined; privateKey?: string | null | undefined; ca?: string | null | undefined }) | null | undefined }
    answer: Schemas['WarehouseCheck']
  }
  /** Show the upkeep of a warehouse */
  'GET /api/destinations/{id}/upkeep': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['WarehouseUpkeep']
  }
  /** Look after the tables of a warehouse now */
  'POST /api/destinations/{id}/upkeep': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['WarehouseUpkeep']
  }
  /** Query a Parquet lake with SQL */
  'POST /api/sql': {
    query: Record<string, never>
    body: { query: string; destinationId?: string | undefined; limit?: number | undefined }
    answer: { columns: { name: string; type: string }[]; rows: unknown[][]; truncated: boolean; warnings: string[] }
  }
  /** List the tables that a query can name */
  'GET /api/sql/tables': {
    query: { destinationId?: string | undefined }
    body: undefined
    answer: { data: Schemas['LakeTable'][] }
  }
  /** List the saved queries of a warehouse */
  'GET /api/destinations/{id}/queries': {
    query: Record<string, never>
    body: undefined
    answer: { data: Schemas['SavedQuery'][]; next: string | null }
  }
  /** Save a query of a warehouse */
  'POST /api/destinations/{id}/queries': {
    query: Record<string, never>
    body: { name: string; query: string }
    answer: Schemas['SavedQuery']
  }
  /** Remove a saved query */
  'DELETE /api/destinations/{id}/queries/{queryId}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** List tracking plans, oldest first */
  'GET /api/plans': {
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['TrackingPlan'][]; next: string | null }
  }
  /** Create a tracking plan */
  'POST /api/plans': {
    query: { uniqueName?: boolean | undefined }
    body: { name: string; unplanned?: 'allow' | 'observe' | 'quarantine' | undefined; rules: Schemas['PlanRule'][]; description?: string | null | undefined; sourceIds?: string[] | undefined }
    answer: Schemas['TrackingPlan']
  }
  /** Retrieve a tracking plan */
  'GET /api/plans/{id}': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['TrackingPlan']
  }
  /** Update a tracking plan */
  'PATCH /api/plans/{id}': {
    query: Record<string, never>
    body: { name?: string | undefined; unplanned?: 'allow' | 'observe' | 'quarantine' | undefined; rules?: Schemas['PlanRule'][] | undefined; description?: string | null | undefined; sourceIds?: string[] | undefined }
    answer: Schemas['TrackingPlan']
  }
  /** Delete a tracking plan */
  'DELETE /api/plans/{id}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** List violations of tracking plans, newest first */
  'GET /api/violations': {
    query: { sourceId?: string | undefined; source?: string | undefined; plan?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['CountedViolation'][]; next: string | null; faults: { planId: string; rule: string; message: string }[] }
  }
  /** List the integrations of the catalogue */
  'GET /api/catalog': {
    query: { query?: string | undefined; category?: 'analytics' | 'messaging' | 'crm' | 'advertising' | 'audiences' | 'support' | 'experiments' | 'personalization' | 'loyalty' | 'billing' | 'storage' | 'data-quality' | 'developer' | 'other' | undefined; auth?: 'none' | 'custom' | 'basic' | 'oauth2' | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['CatalogEntry'][]; next: string | null; hint?: string | undefined }
  }
  /** Retrieve an integration of the catalogue */
  'GET /api/catalog/{slug}': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['CatalogIntegration']
  }
  /** List the values that a field of an integration can have */
  'POST /api/destinations/{id}/choices': {
    query: Record<string, never>
    body: { action: string; field: string; mapping?: Record<string, unknown> | undefined; syncMode?: string | undefined; page?: string | undefined }
    answer: Schemas['FieldChoices']
  }
  /** List the values that a field can have, before the destination is created */
  'POST /api/catalog/{slug}/choices': {
    query: Record<string, never>
    body: { settings?: Record<string, unknown> | undefined; action: string; field: string; mapping?: Record<string, unknown> | undefined; syncMode?: string | undefined; page?: string | undefined }
    answer: Schemas['FieldChoices']
  }
  /** List the versions of a destination, newest first */
  'GET /api/destinations/{id}/versions': {
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['DestinationVersion'][]; next: string | null }
  }
  /** List the keys of an ordered destination that wait or are held, oldest first */
  'GET /api/destinations/{id}/order': {
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { waitingKeys: number; waitingMessages: number; heldKeys: number; keylessMessages: number; oldest: ({ key: string | null; since: string; messageId: string | null; reason: string | null }) | null; data: Schemas['OrderedKey'][]; next: string | null }
  }
  /** Skip the message that a key waits for, or release a held key */
  'POST /api/destinations/{id}/order/skip': {
    query: Record<string, never>
    body: { key: string; messageId?: string | undefined }
    answer: { deliveryId: string; state: 'waiting' | 'held'; done: boolean }
  }
  /** Attempt the message that a key waits for at once */
  'POST /api/destinations/{id}/order/retry': {
    query: Record<string, never>
    body: { key: string; messageId?: string | undefined }
    answer: { deliveryId: string; state: 'waiting' | 'held'; done: boolean }
  }
  /** Preview what a destination would send */
  'POST /api/destinations/{id}/preview': {
    query: Record<string, never>
    body: { messageId?: string | undefined; message?: Record<string, unknown> | undefined; limit?: number | undefined; changes?: { type?: 'webhook' | 'integration' | 'warehouse' | undefined; name?: string | undefined; aliases?: string[] | undefined; origin?: string | null | undefined; enabled?: boolean | undefined; paused?: boolean | undefined; sourceIds?: string[] | undefined; batch?: { size?: number | undefined; bytes?: number | undefined; lingerMs?: number | undefined } | undefined; retry?: ({ windowMs?: number | undefined; initialMs?: number | undefined; maxMs?: number | undefined; factor?: number | undefined; retryStatuses?: number[] | undefined; failStatuses?: number[] | undefined }) | null | undefined; retryWindowMs?: number | undefined; deadLetter?: string | null | undefined; maxInFlight?: number | undefined; order?: ({ by?: string | undefined; onFailure?: 'skip' | 'hold' | undefined; maxWaiting?: number | undefined }) | null | undefined; includeViolations?: boolean | undefined; historical?: boolean | undefined; filter?: { types?: { allow?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined; deny?: ('identify' | 'track' | 'page' | 'screen' | 'group' | 'alias')[] | undefined } | undefined; events?: { allow?: string[] | undefined; deny?: string[] | undefined } | undefined } | undefined; conditionalFilters?: Schemas['ConditionalFilter'][] | undefined; subscribe?: string | null | undefined; integration?: string | undefined; settings?: Record<string, unknown> | undefined; subscriptions?: ({ id?: string | undefined; name?: string | undefined; action: string; subscribe: string; enabled?: boolean | undefined; mapping?: Record<string, unknown> | undefined; syncMode?: string | null | undefined })[] | undefined; warehouse?: ({ engine: 'parquet'; url: string; endpoint?: string | null | undefined; region?: string | null | undefined; accessKeyId?: string | null | undefined; secretAccessKey?: string | null | undefined; pathStyle?: boolean | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | ({ engine: 'postgres'; url: string; schema?: string | null | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | ({ engine: 'clickhouse'; url: string; database: string; user: string; password?: string | null | undefined; adopt?: boolean | undefined; keepDays?: number | null | undefined }) | undefined; load?: { everyMs?: number | undefined; maxRows?: number | undefined; maxBytes?: number | undefined } | undefined; timeoutMs?: number | undefined; urls?: string[] | undefined; headers?: Record<string, string> | undefined; sharedSecret?: string | null | undefined; signingSecrets?: string[] | undefined; request?: ({ method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined; path?: string | undefined; headers?: Record<string, string> | undefined; body?: Record<string, unknown> | unknown[] | null | undefined; format?: ('json' | 'form' | 'text' | 'ndjson') | { wrap: string } | undefined }) | null | undefined; transformation?: ({ code: string; timeoutMs?: number | undefined; memoryMb?: number | undefined }) | null | undefined; secrets?: Record<string, string | null> | undefined; auth?: ({ type: 'basic'; username: string; password?: string | undefined }) | ({ type: 'bearer'; token?: string | undefined }) | ({ type: 'oauth2'; tokenUrl: string; clientId: string; clientSecret?: string | undefined; scope?: string | null | undefined; audience?: string | null | undefined; credentials?: 'basic' | 'body' | undefined }) | null | undefined; tls?: ({ certificate?: string | null | undefined; privateKey?: string | null | undefined; ca?: string | null | undefined }) | null | undefined; version?: number | undefined } | undefined }
    answer: { data: ({ messageId: string | null; type: string | null; event: string | null; receivedAt: string; message: Record<string, unknown>; requests?: { subscription: string; method: string; url: string; headers: Record<string, string>; body: string }[] | undefined; request: { method: string; url: string; headers: Record<string, string>; body: string } | null; skipped?: { reason: string; rule: string | null; sentence: string } | undefined; dropped?: boolean | undefined; error?: { reason: string; sentence: string; line: number | null } | undefined; logs?: string | undefined })[]; summary: Schemas['PreviewCounts']; before: Schemas['PreviewCounts'] | null }
  }
  /** Retrieve the ledger */
  'GET /api/ledger': {
    query: { recount?: boolean | undefined }
    body: undefined
    answer: { data: { destinationId: string; owed: number; delivered: number; pending: number; failed: number; expired: number; cancelled: number; quarantined: number }[]; next: string | null; consistent: boolean }
  }
  /** List rejected messages and requests, by source and error code */
  'GET /api/rejections': {
    query: Record<string, never>
    body: undefined
    answer: { data: ({ sourceId: string | null; code: string; count: number; lastAt: string; lastSample: string })[]; next: string | null }
  }
  /** Retrieve the total counts of messages per source */
  'GET /api/stats/totals': {
    query: Record<string, never>
    body: undefined
    answer: { data: { sourceId: string; accepted: number; duplicates: number; rejected: number; suppressed: number; quarantined: number; released: number; deleted: number }[]; next: string | null }
  }
  /** List messages, newest first */
  'GET /api/messages': {
    query: { sourceId?: string | undefined; type?: 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | 'delete' | 'dead_letter' | undefined; event?: string | undefined; userId?: string | undefined; messageId?: string | undefined; search?: string | undefined; property?: string | undefined; from?: string | undefined; to?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: ({ id: string; messageId: string | null; sourceId: string; type: string | null; userId: string | null; anonymousId: string | null; event: string | null; receivedAt: string; timestamp: string | null; ip: string | null; browser: boolean; traceId: string | null; violations: ({ rule: string; code: 'unplanned_event' | 'missing_property' | 'unplanned_property' | 'wrong_type' | 'wrong_value' | 'wrong_format' | 'out_of_range' | 'other'; path: string; expected: string; found: string })[]; message: Record<string, unknown> | null; quarantine: ({ state: 'held' | 'released' | 'deleted' | 'expired'; at: string | null }) | null; skips: ({ destinationId: string | null; reason: string; rule: 'type_denied' | 'type_not_allowed' | 'event_denied' | 'event_not_allowed' | 'conditional_filter' | 'not_sampled' | 'subscribe' | 'no_subscription' | null; message: string })[]; deliveries: ({ id: string; destinationId: string; state: 'pending' | 'delivered' | 'failed' | 'expired' | 'cancelled' | null; reason: string | null })[] })[]; next: string | null; searchedBackTo: string | null }
  }
  /** Retrieve a message by its id or messageId */
  'GET /api/messages/{id}': {
    query: Record<string, never>
    body: undefined
    answer: { id: string; messageId: string | null; sourceId: string; type: string | null; userId: string | null; anonymousId: string | null; event: string | null; receivedAt: string; timestamp: string | null; ip: string | null; browser: boolean; traceId: string | null; violations: ({ rule: string; code: 'unplanned_event' | 'missing_property' | 'unplanned_property' | 'wrong_type' | 'wrong_value' | 'wrong_format' | 'out_of_range' | 'other'; path: string; expected: string; found: string })[]; message: Record<string, unknown> | null; quarantine: ({ state: 'held' | 'released' | 'deleted' | 'expired'; at: string | null }) | null; skips: ({ destinationId: string | null; reason: string; rule: 'type_denied' | 'type_not_allowed' | 'event_denied' | 'event_not_allowed' | 'conditional_filter' | 'not_sampled' | 'subscribe' | 'no_subscription' | null; message: string })[]; sourceName: string | null; purged: boolean; duplicates: { count: number; lastAt: string } | null; deliveries: ({ id: string; messageId: string | null; storedMessageId: string; type: string | null; event: string | null; userId: string | null; anonymousId: string | null; destinationId: string; state: 'pending' | 'delivered' | 'failed' | 'expired' | 'cancelled'; reason: string | null; lastReason: string | null; waitingFor: ({ messageId: string | null; key: string | null }) | null; attemptCount: number; replay: boolean; replayOf: string | null; replayJobId: string | null; replayedBy: string | null; nextAttemptAt: string | null; expiresAt: string | null; settledAt: string | null; destinationName: string | null; attempts: ({ attempt: number; url: string; address: string | null; startedAt: string; status: number | null; reason: string | null; error: string | null; timings: { dnsMs: number | null; connectMs: number | null; tlsMs: number | null; firstByteMs: number | null; totalMs: number }; responseStart: string | null; version: number; logs: string | null; subscription: string | null; method: string | null; load: { id: string; tables: { table: string; rows: number }[]; rows: number; bytes: number; durationMs: number } | null })[] })[]; story: ({ at: string | null; what: 'received' | 'duplicate' | 'owed' | 'skipped' | 'quarantined' | 'released' | 'attempted' | 'delivered' | 'failed' | 'expired' | 'cancelled' | 'deleted' | 'waiting'; sentence: string; destinationId: string | null; deliveryId: string | null; reason: string | null; attemptNumber: number | null; attemptIndex: number | null; inBatch: boolean })[]; others: ({ id: string; sourceId: string; sourceName: string | null; receivedAt: string; duplicates: { count: number; lastAt: string } | null; story: ({ at: string | null; what: 'received' | 'duplicate' | 'owed' | 'skipped' | 'quarantined' | 'released' | 'attempted' | 'delivered' | 'failed' | 'expired' | 'cancelled' | 'deleted' | 'waiting'; sentence: string; destinationId: string | null; deliveryId: string | null; reason: string | null; attemptNumber: number | null; attemptIndex: number | null; inBatch: boolean })[] })[] }
  }
  /** List the events of the event catalogue */
  'GET /api/events': {
    query: { q?: string | undefined; type?: 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | undefined; sourceId?: string | undefined; order?: 'count' | 'lastSeen' | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: ({ id: string; sourceId: string; sourceName: string; type: 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | null; event: string | null; firstSeen: string; lastSeen: string; total: number; lastDay: number; lastWeek: number; hours: number[] })[]; next: string | null }
  }
  /** Retrieve an event of the event catalogue */
  'GET /api/events/{id}': {
    query: Record<string, never>
    body: undefined
    answer: { id: string; sourceId: string; sourceName: string; type: 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | null; event: string | null; firstSeen: string; lastSeen: string; total: number; lastDay: number; lastWeek: number; hours: { at: string; count: number }[]; days: { at: string; count: number }[]; examined: number; properties: ({ path: string; types: ({ type: 'string' | 'number' | 'boolean' | 'object' | 'array' | 'null'; share: number })[]; presence: number; firstSeen: string; lastSeen: string; samples: string[] })[]; otherProperties: number; recentMessages: number; destinations: ({ destinationId: string; destinationName: string; sent: number; skips: ({ reason: string; rule: 'type_denied' | 'type_not_allowed' | 'event_denied' | 'event_not_allowed' | 'conditional_filter' | 'not_sampled' | 'subscribe' | 'no_subscription' | null; message: string; count: number })[] })[]; plan: ({ id: string; name: string; rule: ({ mode: string; description: string | null; owner: string | null }) | null }) | null }
  }
  /** List why deliveries failed or expired: the distinct answers to their last attempts */
  'GET /api/deliveries/answers': {
    query: { destinationId: string; state: 'failed' | 'expired'; reason?: string | undefined; from?: string | undefined; to?: string | undefined }
    body: undefined
    answer: { data: ({ reason: string | null; status: number | null; sentence: string; responseStart: string | null; count: number; deliveryId: string })[]; examined: number }
  }
  /** Compare failed messages with delivered ones of the same event */
  'GET /api/deliveries/differences': {
    query: { destinationId: string; state?: 'failed' | 'expired' | undefined; reason?: string | undefined; event?: string | undefined; from?: string | undefined; to?: string | undefined }
    body: undefined
    answer: { type: string | null; event: string | null; examined: { failed: number; delivered: number }; complete: 'yes' | 'too_few' | 'out_of_time'; data: ({ field: string | null; kind: 'presence' | 'type' | 'value' | 'source' | 'version' | 'size'; value: string | null; sentence: string; failed: number; delivered: number; score: number })[] }
  }
  /** List deliveries, newest first */
  'GET /api/deliveries': {
    query: { destinationId?: string | undefined; state?: 'pending' | 'delivered' | 'failed' | 'expired' | 'cancelled' | undefined; reason?: string | undefined; userId?: string | undefined; event?: string | undefined; from?: string | undefined; to?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['Delivery'][]; next: string | null }
  }
  /** List failure causes */
  'GET /api/deliveries/causes': {
    query: { destinationId?: string | undefined; state?: 'failed' | 'expired' | 'cancelled' | undefined; from?: string | undefined; to?: string | undefined }
    body: undefined
    answer: { data: Schemas['FailureCause'][]; counted: number }
  }
  /** Retrieve a delivery, with its attempts and its request */
  'GET /api/deliveries/{id}': {
    query: Record<string, never>
    body: undefined
    answer: { id: string; messageId: string | null; storedMessageId: string; type: string | null; event: string | null; userId: string | null; anonymousId: string | null; destinationId: string; state: 'pending' | 'delivered' | 'failed' | 'expired' | 'cancelled'; reason: string | null; lastReason: string | null; waitingFor: ({ messageId: string | null; key: string | null }) | null; attemptCount: number; replay: boolean; replayOf: string | null; replayJobId: string | null; replayedBy: string | null; nextAttemptAt: string | null; expiresAt: string | null; settledAt: string | null; deadLetter: { destinationId: string; messageId: string } | null; deadLetterWithheld: { destinationId: string; reason: string } | null; attempts: ({ attempt: number; url: string; address: string | null; startedAt: string; status: number | null; reason: string | null; error: string | null; timings: { dnsMs: number | null; connectMs: number | null; tlsMs: number | null; firstByteMs: number | null; totalMs: number }; responseStart: string | null; version: number; logs: string | null; subscription: string | null; method: string | null; load: { id: string; tables: { table: string; rows: number }[]; rows: number; bytes: number; durationMs: number } | null })[]; traceId: string | null; request: ({ headers: Record<string, string>; body: string; note: string | null }) | null }
  }
  /** Replay a delivery */
  'POST /api/deliveries/{id}/replay': {
    query: Record<string, never>
    body: { resume?: boolean | undefined }
    answer: { id: string; replayOf: string }
  }
  /** List messages in quarantine, newest first */
  'GET /api/quarantine': {
    query: { sourceId?: string | undefined; source?: string | undefined; plan?: string | undefined; rule?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: ({ id: string; messageId: string | null; sourceId: string; type: string | null; event: string | null; userId: string | null; anonymousId: string | null; receivedAt: string; planId: string; rule: string; violations: ({ rule: string; code: 'unplanned_event' | 'missing_property' | 'unplanned_property' | 'wrong_type' | 'wrong_value' | 'wrong_format' | 'out_of_range' | 'other'; path: string; expected: string; found: string })[] })[]; next: string | null }
  }
  /** Release messages from quarantine */
  'POST /api/quarantine/release': {
    query: Record<string, never>
    body: { ids?: string[] | undefined; sourceId?: string | undefined; source?: string | undefined; rule?: string | undefined }
    answer: { released: number; kept: number; more: boolean }
  }
  /** Delete messages from quarantine */
  'POST /api/quarantine/delete': {
    query: Record<string, never>
    body: { ids?: string[] | undefined; sourceId?: string | undefined; source?: string | undefined; rule?: string | undefined }
    answer: { deleted: number; more: boolean }
  }
  /** List replay jobs, newest first */
  'GET /api/replays': {
    query: { state?: 'running' | 'paused' | 'finished' | 'cancelled' | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: ({ id: string; state: 'running' | 'paused' | 'finished' | 'cancelled'; total: number; done: number; replayed: number; skipped: number; skippedReasons: { already_replayed?: number | undefined; not_found?: number | undefined; still_pending?: number | undefined; message_gone?: number | undefined; destination_gone?: number | undefined; already_loaded?: number | undefined; user_suppressed?: number | undefined; user_deleted?: number | undefined; filtered?: number | undefined; integrations_disabled?: number | undefined; historical?: number | undefined; unreadable?: number | undefined }; outcomes: { pending: number; delivered: number; failed: number; expired: number; cancelled: number }; includeReplayed: boolean; ratePerSecond: number | null; destinationId: string | null; sourceIds: string[] | null; archive: ({ destinationId: string; after: string; before: string; sourceId: string | null; event: string | null; userId: string | null }) | null; reachedAt: string | null; problem: { code: string; message: string } | null; states: (('failed' | 'expired' | 'cancelled' | 'delivered')[]) | null; reason: string | null; from: string | null; to: string | null; createdAt: string; finishedAt: string | null; createdBy: { id: string; name: string } | null })[]; next: string | null }
  }
  /** Create a replay job */
  'POST /api/replays': {
    query: Record<string, never>
    body: { destinationId?: string | undefined; archive?: { destinationId: string; after: string; before: string; sourceId?: string | undefined; event?: string | undefined; userId?: string | undefined } | undefined; states?: ('failed' | 'expired' | 'cancelled' | 'delivered')[] | undefined; reason?: string | undefined; from?: string | undefined; to?: string | undefined; deliveryIds?: string[] | undefined; includeReplayed?: boolean | undefined; ratePerSecond?: number | null | undefined; dryRun?: boolean | undefined }
    answer: ({ id: string; state: 'running' | 'paused' | 'finished' | 'cancelled'; total: number; done: number; replayed: number; skipped: number; skippedReasons: { already_replayed?: number | undefined; not_found?: number | undefined; still_pending?: number | undefined; message_gone?: number | undefined; destination_gone?: number | undefined; already_loaded?: number | undefined; user_suppressed?: number | undefined; user_deleted?: number | undefined; filtered?: number | undefined; integrations_disabled?: number | undefined; historical?: number | undefined; unreadable?: number | undefined }; outcomes: { pending: number; delivered: number; failed: number; expired: number; cancelled: number }; includeReplayed: boolean; ratePerSecond: number | null; destinationId: string | null; sourceIds: string[] | null; archive: ({ destinationId: string; after: string; before: string; sourceId: string | null; event: string | null; userId: string | null }) | null; reachedAt: string | null; problem: { code: string; message: string } | null; states: (('failed' | 'expired' | 'cancelled' | 'delivered')[]) | null; reason: string | null; from: string | null; to: string | null; createdAt: string; finishedAt: string | null; createdBy: { id: string; name: string } | null; deliveryIds: string[] | null }) | { dryRun: boolean; total: number; alreadyReplayed: number; byDestination: { destinationId: string; total: number; alreadyReplayed: number }[] }
  }
  /** Retrieve a replay job, with its progress */
  'GET /api/replays/{id}': {
    query: Record<string, never>
    body: undefined
    answer: { id: string; state: 'running' | 'paused' | 'finished' | 'cancelled'; total: number; done: number; replayed: number; skipped: number; skippedReasons: { already_replayed?: number | undefined; not_found?: number | undefined; still_pending?: number | undefined; message_gone?: number | undefined; destination_gone?: number | undefined; already_loaded?: number | undefined; user_suppressed?: number | undefined; user_deleted?: number | undefined; filtered?: number | undefined; integrations_disabled?: number | undefined; historical?: number | undefined; unreadable?: number | undefined }; outcomes: { pending: number; delivered: number; failed: number; expired: number; cancelled: number }; includeReplayed: boolean; ratePerSecond: number | null; destinationId: string | null; sourceIds: string[] | null; archive: ({ destinationId: string; after: string; before: string; sourceId: string | null; event: string | null; userId: string | null }) | null; reachedAt: string | null; problem: { code: string; message: string } | null; states: (('failed' | 'expired' | 'cancelled' | 'delivered')[]) | null; reason: string | null; from: string | null; to: string | null; createdAt: string; finishedAt: string | null; createdBy: { id: string; name: string } | null; deliveryIds: string[] | null }
  }
  /** Pause, resume or cancel a replay job, or change its rate */
  'PATCH /api/replays/{id}': {
    query: Record<string, never>
    body: { state?: 'running' | 'paused' | 'cancelled' | undefined; ratePerSecond?: number | null | undefined }
    answer: { id: string; state: 'running' | 'paused' | 'finished' | 'cancelled'; total: number; done: number; replayed: number; skipped: number; skippedReasons: { already_replayed?: number | undefined; not_found?: number | undefined; still_pending?: number | undefined; message_gone?: number | undefined; destination_gone?: number | undefined; already_loaded?: number | undefined; user_suppressed?: number | undefined; user_deleted?: number | undefined; filtered?: number | undefined; integrations_disabled?: number | undefined; historical?: number | undefined; unreadable?: number | undefined }; outcomes: { pending: number; delivered: number; failed: number; expired: number; cancelled: number }; includeReplayed: boolean; ratePerSecond: number | null; destinationId: string | null; sourceIds: string[] | null; archive: ({ destinationId: string; after: string; before: string; sourceId: string | null; event: string | null; userId: string | null }) | null; reachedAt: string | null; problem: { code: string; message: string } | null; states: (('failed' | 'expired' | 'cancelled' | 'delivered')[]) | null; reason: string | null; from: string | null; to: string | null; createdAt: string; finishedAt: string | null; createdBy: { id: string; name: string } | null; deliveryIds: string[] | null }
  }
  /** List deletion requests, newest first */
  'GET /api/deletions': {
    query: { state?: 'pending' | 'running' | 'finished' | 'failed' | undefined; userId?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['DeletionSummary'][]; next: string | null }
  }
  /** Create a deletion request */
  'POST /api/deletions': {
    query: Record<string, never>
    body: { userIds: string[]; sourceIds?: string[] | undefined; suppress?: boolean | undefined }
    answer: { id: string; createdAt: string; suppress: boolean; userCount: number; sourceIds: string[]; state: 'pending' | 'running' | 'finished' | 'failed'; purged: number; targetCounts: { pending: number; running: number; finished: number; failed: number }; targets: ({ userId: string; sourceId: string; destinationId: string | null; deliveryId: string | null; state: 'pending' | 'running' | 'finished' | 'failed' })[]; nextTargets: string | null }
  }
  /** Retrieve a deletion request, with its state per user, source and destination */
  'GET /api/deletions/{id}': {
    query: Record<string, never>
    body: undefined
    answer: { id: string; createdAt: string; suppress: boolean; userCount: number; sourceIds: string[]; state: 'pending' | 'running' | 'finished' | 'failed'; purged: number; targetCounts: { pending: number; running: number; finished: number; failed: number }; targets: ({ userId: string; sourceId: string; destinationId: string | null; deliveryId: string | null; state: 'pending' | 'running' | 'finished' | 'failed' })[]; nextTargets: string | null }
  }
  /** List the state of a deletion request per user, source and destination */
  'GET /api/deletions/{id}/targets': {
    query: { state?: 'pending' | 'running' | 'finished' | 'failed' | undefined; userId?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: ({ userId: string; sourceId: string; destinationId: string | null; deliveryId: string | null; state: 'pending' | 'running' | 'finished' | 'failed' })[]; next: string | null }
  }
  /** List suppressed users */
  'GET /api/suppressions': {
    query: { userId?: string | undefined; sourceId?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['Suppression'][]; next: string | null }
  }
  /** Suppress users */
  'POST /api/suppressions': {
    query: Record<string, never>
    body: { userIds: string[]; sourceIds?: string[] | undefined }
    answer: { added: number }
  }
  /** End the suppression of a user */
  'DELETE /api/suppressions': {
    query: { userId: string; sourceId?: string | undefined }
    body: undefined
    answer: { removed: number }
  }
  /** List incidents: the open ones, and then the closed ones, newest first */
  'GET /api/incidents': {
    query: { state?: 'active' | 'starting' | 'open' | 'closed' | undefined; rule?: 'destination_failing' | 'destination_held' | 'deliveries_expired' | 'backlog_growing' | 'source_silent' | 'source_volume_unusual' | 'messages_rejected' | 'plan_violated' | 'quarantine_expiring' | 'disk_almost_full' | 'node_lost' | 'deliveries_failed' | 'attempts_failing' | 'deliveries_delayed' | 'destination_stopped' | 'messages_quarantined' | 'ledger_unbalanced' | 'versions_differ' | 'order_backlog_growing' | 'warehouse_tables' | undefined; sourceId?: string | undefined; destinationId?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['Incident'][]; next: string | null }
  }
  /** Retrieve an incident, with its timeline */
  'GET /api/incidents/{id}': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['IncidentDetail']
  }
  /** Acknowledge an incident: say that somebody takes care of it */
  'POST /api/incidents/{id}/acknowledge': {
    query: Record<string, never>
    body: { name?: string | undefined; note?: string | null | undefined }
    answer: Schemas['Incident']
  }
  /** Take back the acknowledgement of an incident */
  'DELETE /api/incidents/{id}/acknowledge': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Retrieve the rules for alerts, with their settings */
  'GET /api/alerts': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['Alerts']
  }
  /** Change the settings of rules */
  'PATCH /api/alerts': {
    query: Record<string, never>
    body: { rules?: { destination_failing?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined; failurePercent?: number | null | undefined }) | null | undefined; destination_held?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null | undefined; deliveries_expired?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterCount?: number | null | undefined; closeAfterMinutes?: number | null | undefined }) | null | undefined; backlog_growing?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined; leastPending?: number | null | undefined }) | null | undefined; source_silent?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined }) | null | undefined; source_volume_unusual?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined; factor?: number | null | undefined; leastMessages?: number | null | undefined }) | null | undefined; messages_rejected?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined; rejectedPercent?: number | null | undefined; leastRejected?: number | null | undefined }) | null | undefined; plan_violated?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; leastViolations?: number | null | undefined }) | null | undefined; quarantine_expiring?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; daysBefore?: number | null | undefined }) | null | undefined; disk_almost_full?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; closeAfterMinutes?: number | null | undefined; freePercent?: number | null | undefined }) | null | undefined; node_lost?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined }) | null | undefined; deliveries_failed?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterCount?: number | null | undefined; closeAfterMinutes?: number | null | undefined }) | null | undefined; attempts_failing?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; failurePercent?: number | null | undefined; leastAttempts?: number | null | undefined }) | null | undefined; deliveries_delayed?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; leastPending?: number | null | undefined }) | null | undefined; destination_stopped?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null | undefined; messages_quarantined?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null | undefined; ledger_unbalanced?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null | undefined; versions_differ?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined }) | null | undefined; order_backlog_growing?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null | undefined; warehouse_tables?: ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null | undefined } | undefined; exceptions?: { destination_failing?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined; failurePercent?: number | null | undefined }) | null> | undefined; destination_held?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null> | undefined; deliveries_expired?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterCount?: number | null | undefined; closeAfterMinutes?: number | null | undefined }) | null> | undefined; backlog_growing?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined; leastPending?: number | null | undefined }) | null> | undefined; source_silent?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined }) | null> | undefined; source_volume_unusual?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined; factor?: number | null | undefined; leastMessages?: number | null | undefined }) | null> | undefined; messages_rejected?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; closeAfterMinutes?: number | null | undefined; rejectedPercent?: number | null | undefined; leastRejected?: number | null | undefined }) | null> | undefined; plan_violated?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; leastViolations?: number | null | undefined }) | null> | undefined; quarantine_expiring?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; daysBefore?: number | null | undefined }) | null> | undefined; disk_almost_full?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; closeAfterMinutes?: number | null | undefined; freePercent?: number | null | undefined }) | null> | undefined; node_lost?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined }) | null> | undefined; deliveries_failed?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterCount?: number | null | undefined; closeAfterMinutes?: number | null | undefined }) | null> | undefined; attempts_failing?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; failurePercent?: number | null | undefined; leastAttempts?: number | null | undefined }) | null> | undefined; deliveries_delayed?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined; leastPending?: number | null | undefined }) | null> | undefined; destination_stopped?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null> | undefined; messages_quarantined?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null> | undefined; ledger_unbalanced?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null> | undefined; versions_differ?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined; openAfterMinutes?: number | null | undefined }) | null> | undefined; order_backlog_growing?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null> | undefined; warehouse_tables?: Record<string, ({ enabled?: boolean | null | undefined; notify?: boolean | null | undefined }) | null> | undefined } | undefined }
    answer: Schemas['Alerts']
  }
  /** List the mutes that have not ended */
  'GET /api/alerts/mutes': {
    query: Record<string, never>
    body: undefined
    answer: { data: Schemas['Mute'][]; next: string | null }
  }
  /** Mute alerts of a rule, of a source, of a destination, or all of them, for some time */
  'POST /api/alerts/mutes': {
    query: Record<string, never>
    body: { rule?: 'destination_failing' | 'destination_held' | 'deliveries_expired' | 'backlog_growing' | 'source_silent' | 'source_volume_unusual' | 'messages_rejected' | 'plan_violated' | 'quarantine_expiring' | 'disk_almost_full' | 'node_lost' | 'deliveries_failed' | 'attempts_failing' | 'deliveries_delayed' | 'destination_stopped' | 'messages_quarantined' | 'ledger_unbalanced' | 'versions_differ' | 'order_backlog_growing' | 'warehouse_tables' | null | undefined; sourceId?: string | null | undefined; destinationId?: string | null | undefined; until?: string | undefined; note?: string | null | undefined; minutes?: number | undefined }
    answer: Schemas['Mute']
  }
  /** End a mute */
  'DELETE /api/alerts/mutes/{id}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Send a test alert to all destinations of the source system */
  'POST /api/alerts/test': {
    query: Record<string, never>
    body: undefined
    answer: { messageId: string; destinationIds: string[] }
  }
  /** List OAuth applications, oldest first */
  'GET /api/oauth-apps': {
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['OAuthApp'][]; next: string | null }
  }
  /** Create an OAuth application */
  'POST /api/oauth-apps': {
    query: { uniqueName?: boolean | undefined }
    body: { name: string; sourceIds?: string[] | undefined; keys?: ({ id?: string | undefined; publicKeyPem: string })[] | undefined }
    answer: Schemas['OAuthApp']
  }
  /** Retrieve an OAuth application */
  'GET /api/oauth-apps/{id}': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['OAuthApp']
  }
  /** Update an OAuth application */
  'PATCH /api/oauth-apps/{id}': {
    query: Record<string, never>
    body: { name?: string | undefined; sourceIds?: string[] | undefined; keys?: ({ id?: string | undefined; publicKeyPem: string })[] | undefined }
    answer: Schemas['OAuthApp']
  }
  /** Delete an OAuth application */
  'DELETE /api/oauth-apps/{id}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Add a public key to an OAuth application */
  'POST /api/oauth-apps/{id}/keys': {
    query: Record<string, never>
    body: { id?: string | undefined; publicKeyPem: string }
    answer: { id: string; name: string; sourceIds: string[]; keys: Schemas['OAuthKey'][]; tokensRevokedBefore: string | null; createdAt: string; keyId: string }
  }
  /** Remove a public key from an OAuth application */
  'DELETE /api/oauth-apps/{id}/keys/{keyId}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Revoke all access tokens of an OAuth application */
  'POST /api/oauth-apps/{id}/revoke-tokens': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['OAuthApp']
  }
  /** Run diagnostics */
  'GET /api/diagnostics': {
    query: Record<string, never>
    body: undefined
    answer: { at: string; scheduleAt: string; version: string | null; startedAt: string | null; storePath: string | null; store: string | null; secretKeyPath: string | null; checks: ({ name: string; state: 'good' | 'warning' | 'bad' | 'unknown'; message: string; advice: string | null; destinationId: string | null; url: string | null; ms: number })[] }
  }
  /** Retrieve facts about the installation: version, start time, store and retention */
  'GET /api/installation': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['Installation']
  }
  /** List the nodes that are alive */
  'GET /api/nodes': {
    query: Record<string, never>
    body: undefined
    answer: { data: Schemas['Node'][]; next: string | null }
  }
  /** Create a backup */
  'POST /api/backups': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['Backup']
  }
  /** Retrieve a backup, with its progress */
  'GET /api/backups/{id}': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['Backup']
  }
  /** Delete a backup, or cancel it while it is in progress */
  'DELETE /api/backups/{id}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Download a backup */
  'GET /api/backups/{id}/file': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Show whether the catalogue is installed, or the progress of the installation */
  'GET /api/catalog/install': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['CatalogInstallation']
  }
  /** Install the catalogue of integrations */
  'POST /api/catalog/install': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['CatalogInstallation']
  }
  /** Show whether the warehouse package is installed, or the progress of the installation */
  'GET /api/warehouse/install': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['CatalogInstallation']
  }
  /** Install the warehouse package */
  'POST /api/warehouse/install': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['CatalogInstallation']
  }
  /** Retrieve counts over time */
  'GET /api/stats': {
    query: { sourceId?: string | undefined; destinationId?: string | undefined; from?: string | undefined; to?: string | undefined; step?: '1m' | '5m' | '1h' | '1d' | undefined; latency?: 'histogram' | undefined }
    body: undefined
    answer: { data: ({ at: string; accepted?: number | undefined; duplicates?: number | undefined; rejected?: Record<string, number> | undefined; warnings?: Record<string, number> | undefined; suppressed?: number | undefined; quarantined?: number | undefined; skipped?: Record<string, number> | undefined; owed?: number | undefined; attempts?: number | undefined; delivered?: number | undefined; failed?: number | undefined; expired?: number | undefined; cancelled?: number | undefined; retried?: number | undefined; latencyMs?: { p50: number; p95: number; p99: number } | null | undefined; latencyHistogram?: { upToMs: number; count: number }[] | undefined; pending?: number | undefined; oldestPendingMs?: number | undefined })[]; from: string; to: string; step: '1m' | '5m' | '1h' | '1d'; next: string | null }
  }
  /** Retrieve counts of every source over time */
  'GET /api/stats/sources': {
    query: { from?: string | undefined; to?: string | undefined; step?: '1m' | '5m' | '1h' | '1d' | undefined }
    body: undefined
    answer: { data: { sourceId: string; accepted: number; duplicates: number; rejected: number; suppressed: number; quarantined: number; series: { accepted: number[]; rejected: number[] } }[]; from: string; to: string; step: '1m' | '5m' | '1h' | '1d'; next: string | null }
  }
  /** Retrieve counts of every destination over time */
  'GET /api/stats/destinations': {
    query: { from?: string | undefined; to?: string | undefined; step?: '1m' | '5m' | '1h' | '1d' | undefined }
    body: undefined
    answer: { data: { destinationId: string; owed: number; delivered: number; failed: number; expired: number; cancelled: number; retried: number; owedBySource: Record<string, number>; series: { delivered: number[]; unsuccessful: number[] } }[]; from: string; to: string; step: '1m' | '5m' | '1h' | '1d'; next: string | null }
  }
  /** Stream live events */
  'GET /api/live': {
    query: { sourceId?: string | undefined; destinationId?: string | undefined; type?: 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias' | 'delete' | 'dead_letter' | undefined; messageId?: string | undefined; event?: string | undefined; userId?: string | undefined; what?: 'accepted' | 'rejected' | 'attempt' | 'failure' | undefined }
    body: undefined
    answer: undefined
  }
  /** List control tokens */
  'GET /api/tokens': {
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['Token'][]; next: string | null }
  }
  /** Create a control token */
  'POST /api/tokens': {
    query: Record<string, never>
    body: { name: string; role?: 'viewer' | 'editor' | 'admin' | undefined; sources?: 'all' | string[] | undefined; expiresAt?: string | null | undefined }
    answer: { id: string; name: string; role: 'viewer' | 'editor' | 'admin'; sources: 'all' | string[]; expiresAt: string | null; owner: ({ subject: string; email: string | null }) | null; createdAt: string | null; lastUsedAt: string | null; token: string }
  }
  /** Revoke a control token */
  'DELETE /api/tokens/{id}': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Log in to the dashboard */
  'POST /api/login': {
    query: Record<string, never>
    body: { token: string }
    answer: Schemas['Session']
  }
  /** Log out of the dashboard */
  'POST /api/logout': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Retrieve the name, the role and the sources of the caller, and when its session ends */
  'GET /api/session': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['Session']
  }
  /** List the ways to log in */
  'GET /api/login/methods': {
    query: Record<string, never>
    body: undefined
    answer: Schemas['LoginMethods']
  }
  /** Start a login with single sign-on */
  'GET /api/login/oidc': {
    query: { returnTo?: string | undefined }
    body: undefined
    answer: undefined
  }
  /** End a login with single sign-on */
  'GET /api/login/oidc/callback': {
    query: { code?: string | undefined; state?: string | undefined; iss?: string | undefined; error?: string | undefined }
    body: undefined
    answer: undefined
  }
  /** End sessions that ended at the identity provider */
  'POST /api/login/oidc/backchannel-logout': {
    query: Record<string, never>
    body: undefined
    answer: { sessions: number }
  }
  /** Ask a person to give the command line access */
  'GET /api/login/cli': {
    query: { port: string; state: string; challenge: string; name?: string | undefined }
    body: undefined
    answer: undefined
  }
  /** Give the command line access */
  'POST /api/login/cli': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** Exchange the code of a login for a personal token */
  'POST /api/login/cli/token': {
    query: Record<string, never>
    body: { code: string; verifier: string }
    answer: { id: string; name: string; role: 'viewer' | 'editor' | 'admin'; sources: 'all' | string[]; expiresAt: string | null; owner: ({ subject: string; email: string | null }) | null; createdAt: string | null; lastUsedAt: string | null; token: string }
  }
  /** List people */
  'GET /api/people': {
    query: { limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['Person'][]; next: string | null }
  }
  /** End all sessions of a person */
  'DELETE /api/people/{id}/sessions': {
    query: Record<string, never>
    body: undefined
    answer: undefined
  }
  /** List audit log entries, newest first */
  'GET /api/audit': {
    query: { actor?: string | undefined; action?: string | undefined; subject?: string | undefined; userId?: string | undefined; from?: string | undefined; to?: string | undefined; limit?: number | undefined; cursor?: string | undefined }
    body: undefined
    answer: { data: Schemas['AuditEntry'][]; next: string | null }
  }
  /** Validate a configuration */
  'POST /api/configuration/check': {
    query: Record<string, never>
    body: { sources?: ({ id?: string | null | undefined; settings: Record<string, unknown> })[] | undefined; destinations?: ({ id?: string | null | undefined; settings: Record<string, unknown> })[] | undefined; oauthApps?: ({ id?: string | null | undefined; settings: Record<string, unknown> })[] | undefined; plans?: ({ id?: string | null | undefined; settings: Record<string, unknown> })[] | undefined }
    answer: { problems: ({ kind: 'sources' | 'destinations' | 'oauthApps' | 'plans'; index: number; field: string | null; code: string; message: string })[]; changedSecrets: ({ kind: 'sources' | 'destinations' | 'oauthApps' | 'plans'; index: number; fields: string[] })[] }
  }
  /** Export the configuration */
  'GET /api/configuration': {
    query: { writeKeys?: boolean | undefined }
    body: undefined
    answer: { yaml: string; variables: string[] }
  }
  /** Retrieve the JSON Schema of the configuration file */
  'GET /api/configuration/schema': {
    query: Record<string, never>
    body: undefined
    answer: Record<string, unknown>
  }
  /** Retrieve the OpenAPI document */
  'GET /api/openapi.json': {
    query: Record<string, never>
    body: undefined
    answer: Record<string, unknown>
  }
}
