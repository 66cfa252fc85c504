// Starts single sign-on if it is set up. Otherwise none of its modules is loaded. A provider that is away does not prevent the start.

import { readFileSync } from 'node:fs'
import type { Config } from '../config.ts'
import type { SingleSignOn } from '../control/access/people/single-sign-on.ts'
import type { Log } from '../logging/log.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { StartProblem } from './open-store.ts'

export async function startSingleSignOn(
  config: Config,
  { store, clock, log }: { store: Store; clock: Clock; log: Log },
): Promise<SingleSignOn | null> {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcRoles: rules, publicUrl } = config
  if (issuer === null || clientId === null || rules === null || publicUrl === null) return null
  const clientSecret = config.oidcClientSecret ?? readSecret(config.oidcClientSecretFile ?? '')
  const { openSingleSignOn } = await import('../control/access/people/single-sign-on.ts')
  const { oidcScopes: scopes, oidcName: name, oidcContact: contact, oidcGrace: graceSeconds } = config
  return openSingleSignOn(
    { issuer, clientId, clientSecret, rules, publicUrl, scopes, name, contact, graceSeconds },
    { store, clock, onEvent: ({ problem, ...about }) => log.warn(about, `single sign-on: ${problem}`) },
  )
}

function readSecret(path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new StartProblem(`SWITCHYARD_OIDC_CLIENT_SECRET_FILE cannot be read: ${(error as Error).message}.`)
  }
  if (text === '' || text.length > 2_000)
    throw new StartProblem(`SWITCHYARD_OIDC_CLIENT_SECRET_FILE must contain the client secret, but ${path} has ${text.length} characters.`)
  return text
}
