// The parts of the API in the order in which a newcomer meets them: the headings of the reference.

import type { Tag } from './document.ts'

export const TRACKING = 'Tracking'
export const OAUTH = 'OAuth 2.0'
export const SERVICE = 'Service'

/** Of the control API by the first word of a path. */
const RESOURCES: Readonly<Record<string, Tag>> = {
  sources: { name: 'Sources', description: 'Where messages come from. A source has write keys, several while one is being replaced.' },
  destinations: { name: 'Destinations', description: 'Webhooks: where messages go, with which settings, and how each of them does.' },
  messages: { name: 'Messages', description: 'What was accepted, where it went, and where not and why.' },
  deliveries: { name: 'Deliveries', description: 'One message owed to one destination: its state and every attempt.' },
  replays: { name: 'Replays', description: 'Sending many deliveries again, as a job that survives a restart.' },
  deletions: { name: 'Deletions', description: 'Deletion requests for users: purged here, and told to the webhooks.' },
  suppressions: { name: 'Suppressions', description: 'Users whose new messages are dropped.' },
  'oauth-apps': { name: 'OAuth applications', description: 'Who may ask for access tokens, with which public keys, for which sources.' },
  tokens: { name: 'Tokens', description: 'Tokens of the control API. A token is shown once, when it is made.' },
  login: { name: 'Session', description: 'Logging in to the dashboard with a control token.' },
  audit: { name: 'Audit', description: 'The audit log: who changed what, when, with the values before and after.' },
  ledger: { name: 'Books', description: 'Counts of deliveries per destination, of messages per source, and of rejected messages.' },
  diagnostics: {
    name: 'Operating',
    description: 'Checks of the whole installation, its nodes, copies of the store, and configuration as a file.',
  },
  live: { name: 'Live', description: 'Live events of the service, as server-sent events.' },
  openapi: { name: 'Description', description: 'The OpenAPI document of this API.' },
}

const SAME: Readonly<Record<string, string>> = {
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
    description: 'Sending messages. One call, a batch of them, or a pixel; Segment’s clients work with only the host changed.',
  },
  { name: OAUTH, description: 'Access tokens for sources that require them.' },
  ...Object.values(RESOURCES),
  { name: SERVICE, description: 'Health checks, metrics, and the OpenAPI document without a token.' },
]

export function tagOf(path: string): string {
  const [, word = ''] = /^\/([a-z-]+)/.exec(path) ?? []
  // A test finds a tag that is not in the list above; a service that runs must not stop for it.
  return RESOURCES[SAME[word] ?? word]?.name ?? word
}
