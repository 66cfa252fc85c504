// The actions of the audit log as text, and links to their subjects.

const SENTENCES: Readonly<Record<string, string>> = {
  'alerts.test': 'sent a test alert',
  'alerts.update': 'changed the rules of alerts',
  'backup.create': 'created a backup',
  'catalog.install': 'installed the catalogue',
  'deletion.create': 'requested a deletion',
  'delivery.replay': 'replayed a delivery',
  'destination.create': 'created the destination',
  'destination.delete': 'deleted the destination',
  'destination.load': 'loaded the waiting messages of the destination',
  'destination.renew-tokens': 'stored renewed tokens of the destination',
  'destination.retry': 'retried the pending deliveries of the destination',
  'destination.test': 'sent a test to the destination',
  'destination.upkeep': 'started the upkeep of the destination',
  'destination.update': 'changed the destination',
  'incident.acknowledge': 'acknowledged the incident',
  'incident.unacknowledge': 'took back the acknowledgement of the incident',
  'mute.create': 'muted an alert',
  'mute.delete': 'ended the mute of an alert',
  'oauth-app.add-key': 'added a key to the OAuth application',
  'oauth-app.create': 'created the OAuth application',
  'oauth-app.delete': 'deleted the OAuth application',
  'oauth-app.remove-key': 'removed a key from the OAuth application',
  'oauth-app.revoke-tokens': 'revoked the access tokens of the OAuth application',
  'oauth-app.update': 'changed the OAuth application',
  'person.end-sessions': 'ended the sessions of the person',
  'plan.create': 'created the tracking plan',
  'plan.delete': 'deleted the tracking plan',
  'plan.update': 'changed the tracking plan',
  'quarantine.delete': 'deleted messages from quarantine',
  'quarantine.release': 'released messages from quarantine',
  'replay.create': 'started a replay',
  'replay.update': 'changed a replay',
  'session.login': 'logged in',
  'session.logout': 'logged out',
  'source.add-write-key': 'added a write key to the source',
  'source.create': 'created the source',
  'source.delete': 'deleted the source',
  'source.remove-write-key': 'removed a write key from the source',
  'source.update': 'changed the source',
  'sql.query': 'queried the lake',
  'sql.save': 'saved a query of the lake',
  'sql.remove': 'removed a saved query of the lake',
  'suppression.create': 'suppressed users',
  'suppression.delete': 'removed the suppression of a user',
  'token.create': 'created the token',
  'token.delete': 'revoked the token',
  'warehouse.check': 'tested the settings of a new warehouse',
  'warehouse.install': 'installed the warehouse package',
}

export const ACTIONS: readonly string[] = Object.keys(SENTENCES)

/** For an unknown action, returns its name. */
export function actionText(action: string): string {
  return SENTENCES[action] ?? action
}

const VIEWS: Readonly<Record<string, string>> = {
  source: '/sources/',
  destination: '/destinations/',
  deletion: '/deletions/',
  replay: '/replays/',
  delivery: '/deliveries/',
  incident: '/alerts/',
  plan: '/plans/',
}

/** Null if the subject has no page, or was deleted. */
export function subjectPath(action: string, subject: string): string | null {
  const [thing = '', verb] = action.split('.')
  const view = VIEWS[thing]
  return view === undefined || verb === 'delete' ? null : `${view}${encodeURIComponent(subject)}`
}
