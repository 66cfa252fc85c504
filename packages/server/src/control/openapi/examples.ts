// Example request bodies, by method and path of the route. Words in capitals are placeholders for values of the reader. A test checks each
// example against the schema of its route.

/** Nobody has the private key for this public key. */
const PUBLIC_KEY = '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n'

export const EXAMPLES: Readonly<Record<string, unknown>> = {
  'POST /login': { token: 'TOKEN' },
  'POST /login/oidc/backchannel-logout': { logout_token: 'LOGOUT_TOKEN' },
  'POST /login/cli': { port: '49152', state: 'STATE', challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', name: 'Laptop' },
  'POST /login/cli/token': { code: 'CODE', verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk' },
  'POST /sources': { name: 'Website' },
  'PATCH /sources/:id': { enabled: false },
  'POST /sources/:id/write-keys': {},
  'POST /sources/:id/privacy/preview': { privacy: [{ path: 'traits.email', action: 'hash' }], limit: 10 },
  'POST /plans/learn': { source: 'SOURCE_ID', from: '2026-11-15T00:00:00.000Z' },
  'POST /destinations': {
    name: 'Warehouse',
    sourceIds: ['SOURCE_ID'],
    urls: ['https://example.com/webhook'],
    sharedSecret: 'a long random string',
  },
  'PATCH /destinations/:id': { paused: true, batch: { size: 100 } },
  'POST /destinations/:id/test': { type: 'track' },
  'POST /destinations/:id/preview': { limit: 10, changes: { subscribe: 'type = "track"' } },
  'POST /destinations/:id/choices': { action: 'removeProfile', field: 'list_id' },
  'POST /destinations/:id/order/skip': { key: 'user-1', messageId: 'MESSAGE_ID' },
  'POST /destinations/:id/order/retry': { key: 'user-1' },
  'POST /deliveries/:id/replay': { resume: true },
  'POST /catalog/:slug/choices': { settings: { api_key: 'API_KEY' }, action: 'removeProfile', field: 'list_id' },
  'POST /quarantine/release': { source: 'SOURCE_ID', rule: 'track Order Completed' },
  'POST /quarantine/delete': { ids: ['MESSAGE_ID'] },
  'POST /sql': { query: 'select event, count(*) from tracks group by 1' },
  'POST /destinations/:id/queries': { name: 'Events by day', query: 'select day, count(*) from tracks group by 1' },
  'POST /warehouse/check': {
    type: 'warehouse',
    name: 'Lake',
    sourceIds: ['SOURCE_ID'],
    warehouse: { engine: 'parquet', url: 'file:///var/lib/switchyard/lake' },
  },
  'POST /replays': { destinationId: 'DESTINATION_ID', states: ['failed', 'expired'], from: '2026-11-15T00:00:00.000Z', dryRun: true },
  'PATCH /replays/:id': { state: 'paused' },
  'POST /deletions': { userIds: ['u-1'], suppress: true },
  'POST /suppressions': { userIds: ['u-1'] },
  'PATCH /alerts': { rules: { destination_failing: { openAfterMinutes: 10 } } },
  'POST /incidents/:id/acknowledge': { name: 'Ada', note: 'The receiver is being restarted.' },
  'POST /alerts/mutes': { destinationId: 'DESTINATION_ID', minutes: 60, note: 'The receiver is being upgraded.' },
  'POST /oauth-apps': { name: 'Backend', sourceIds: ['SOURCE_ID'], keys: [{ id: 'key-1', publicKeyPem: PUBLIC_KEY }] },
  'PATCH /oauth-apps/:id': { sourceIds: ['SOURCE_ID'] },
  'POST /oauth-apps/:id/keys': { id: 'key-2', publicKeyPem: PUBLIC_KEY },
  'POST /plans': {
    name: 'Shop',
    sourceIds: ['SOURCE_ID'],
    rules: [
      {
        type: 'track',
        event: 'Order Completed',
        description: 'An order was paid.',
        schema: { type: 'object', properties: { total: { type: 'number', minimum: 0 } }, required: ['total'] },
      },
    ],
  },
  'PATCH /plans/:id': { unplanned: 'observe' },
  'POST /tokens': { name: 'Grafana', role: 'viewer', sources: 'all' },
  'POST /configuration/check': { sources: [{ settings: { name: 'Website' } }] },
}
