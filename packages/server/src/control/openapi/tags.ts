// The tags of the OpenAPI document, in the order in which a newcomer meets them. The reference has one page per tag.

import type { Tag } from './document.ts'

export const TRACKING = 'Tracking'
export const OAUTH = 'OAuth 2.0'
export const SERVICE = 'Health and metrics'
export const OPENAPI = 'OpenAPI document'

/** The tags of the control API, by the first word of a path. */
const RESOURCES: Readonly<Record<string, Tag>> = {
  sources: {
    name: 'Sources',
    description:
      'A source is an application or website that sends messages. It has one or more write keys, with which senders identify it.',
  },
  destinations: {
    name: 'Destinations',
    description:
      'A destination is a webhook or an integration that receives messages. These operations manage its settings, test it and show its health.',
  },
  catalog: {
    name: 'Catalogue',
    description: 'The integrations that a destination can use: their settings, actions and presets.',
  },
  warehouse: {
    name: 'Warehouses',
    description: 'Installs the package that destinations of the type `warehouse` need, and shows whether it is installed.',
  },
  sql: { name: 'SQL', description: 'Queries over the tables of a Parquet lake.' },
  plans: {
    name: 'Tracking plans',
    description:
      'A tracking plan says which events a source sends, and what their properties look like. New messages are checked against the plan of their source.',
  },
  messages: {
    name: 'Messages',
    description: 'Accepted messages, with the destinations that they were sent to, and the reasons why they were not sent to others.',
  },
  events: {
    name: 'Event catalogue',
    description: 'Which events each source sends: how often, with which properties, and which destinations receive them.',
  },
  quarantine: {
    name: 'Quarantine',
    description: 'Messages that violate a tracking plan and are not sent until somebody releases them.',
  },
  deliveries: { name: 'Deliveries', description: 'A delivery is one message for one destination. It has a state and a list of attempts.' },
  replays: { name: 'Replays', description: 'A replay job sends many deliveries again. It continues after a restart of the service.' },
  deletions: {
    name: 'Deletions',
    description: 'A deletion request deletes the stored messages of users and sends a `delete` message to the destinations.',
  },
  suppressions: { name: 'Suppressions', description: 'If a user is suppressed, new messages of this user are dropped.' },
  alerts: {
    name: 'Alerts',
    description:
      'The service records problems as incidents, and sends alerts about them as messages of the source `system`. These operations list incidents, change and mute rules, and send a test alert.',
  },
  'oauth-apps': {
    name: 'OAuth applications',
    description: 'An OAuth application can request access tokens for its sources. It authenticates with its public keys.',
  },
  tokens: { name: 'Control tokens', description: 'Tokens for the control API. A token is shown only once, when it is created.' },
  login: {
    name: 'Sessions',
    description: 'Log in to the dashboard with single sign-on or with a control token, and log out.',
  },
  people: {
    name: 'People',
    description: 'The people who have logged in with single sign-on, with their roles and sources, which the identity provider decides.',
  },
  audit: { name: 'Audit log', description: 'Who changed what and when, with the values before and after the change.' },
  ledger: {
    name: 'Ledger and statistics',
    description: 'Counts of deliveries per destination, of messages per source, and of rejected messages.',
  },
  diagnostics: {
    name: 'Operations',
    description: 'Diagnostics, nodes, backups of the store, and the configuration as a file.',
  },
  live: { name: 'Live events', description: 'Events of the service as they happen, as server-sent events.' },
  openapi: { name: OPENAPI, description: 'The OpenAPI document of this API, from which this reference is generated.' },
}

const ALIASES: Readonly<Record<string, string>> = {
  incidents: 'alerts',
  violations: 'plans',
  rejections: 'ledger',
  stats: 'ledger',
  nodes: 'diagnostics',
  installation: 'diagnostics',
  backups: 'diagnostics',
  configuration: 'diagnostics',
  logout: 'login',
  session: 'login',
  sessions: 'login',
}

export const TAGS: readonly Tag[] = [
  {
    name: TRACKING,
    description:
      'Send messages: a single call, a batch, or a tracking pixel. The API is compatible with Segment: its client libraries work if you change the host.',
  },
  { name: OAUTH, description: 'Get access tokens for sources that require OAuth 2.0.' },
  ...Object.values(RESOURCES),
  { name: SERVICE, description: 'Health checks for load balancers, and metrics for Prometheus.' },
]

export function tagOf(path: string): string {
  const [, word = ''] = /^\/([a-z-]+)/.exec(path) ?? []
  // A test fails for a path without a tag. A running service falls back to the word, because it must not fail for this.
  return RESOURCES[ALIASES[word] ?? word]?.name ?? word
}
