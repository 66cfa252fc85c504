// What can be done, as the audit log names it, in words, and where the things are that it was done to.

const SENTENCES: Readonly<Record<string, string>> = {
  'backup.create': 'made a backup',
  'deletion.create': 'asked for a deletion',
  'delivery.replay': 'replayed a delivery',
  'destination.create': 'made the destination',
  'destination.delete': 'deleted the destination',
  'destination.test': 'sent a test to the destination',
  'destination.update': 'changed the destination',
  'oauth-app.add-key': 'added a key to the OAuth application',
  'oauth-app.create': 'made the OAuth application',
  'oauth-app.delete': 'deleted the OAuth application',
  'oauth-app.remove-key': 'removed a key of the OAuth application',
  'oauth-app.revoke-tokens': 'revoked the access tokens of the OAuth application',
  'oauth-app.update': 'changed the OAuth application',
  'replay.create': 'began a replay',
  'replay.update': 'changed a replay',
  'session.login': 'logged in',
  'session.logout': 'logged out',
  'source.add-write-key': 'added a write key to the source',
  'source.create': 'made the source',
  'source.delete': 'deleted the source',
  'source.remove-write-key': 'removed a write key of the source',
  'source.update': 'changed the source',
  'suppression.create': 'suppressed users',
  'suppression.delete': 'took messages of a user again',
  'token.create': 'made the token',
  'token.delete': 'revoked the token',
}

export const ACTIONS: readonly string[] = Object.keys(SENTENCES)

/** Of one that is not known here, its name. */
export function actionText(action: string): string {
  return SENTENCES[action] ?? `did ${action}`
}

const VIEWS: Readonly<Record<string, string>> = {
  source: '/sources/',
  destination: '/destinations/',
  deletion: '/deletions/',
  replay: '/replays/',
  delivery: '/deliveries/',
}

/** Null for what has no view, or is no more. */
export function subjectPath(action: string, subject: string): string | null {
  const [thing = '', verb] = action.split('.')
  const view = VIEWS[thing]
  return view === undefined || verb === 'delete' ? null : `${view}${encodeURIComponent(subject)}`
}
