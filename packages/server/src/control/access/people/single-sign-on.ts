// Single sign-on as the rest of the service sees it: made at the start if it is set up, and not loaded otherwise.

import { randomBytes } from 'node:crypto'
import type { RoleRule } from '../../../api/settings/role-rules.ts'
import { createSecretBox } from '../../../secrets/secret-box.ts'
import { type Store, StoreUnavailable } from '../../../store/store.ts'
import type { Clock } from '../../../timing/clock.ts'
import { CommandLineLogins } from './command-line-logins.ts'
import { Logins } from './logins.ts'
import { People, type PeopleOptions } from './people.ts'
import { Provider } from './provider.ts'

export const CALLBACK_PATH = '/api/login/oidc/callback'
const TEND_EVERY_MS = 5 * 60_000

export interface SingleSignOnSettings {
  issuer: string
  clientId: string
  clientSecret: string
  scopes: string
  rules: readonly RoleRule[]
  publicUrl: string
  name: string
  contact: string | null
  graceSeconds: number
  /** For tests. */
  checkEveryMs?: number
}

export interface SingleSignOn {
  name: string
  contact: string | null
  issuer: string
  people: People
  logins: Logins
  commandLine: CommandLineLogins
  close(): void
}

export async function openSingleSignOn(
  settings: SingleSignOnSettings,
  { store, clock, onEvent }: { store: Store; clock: Clock; onEvent: PeopleOptions['onEvent'] },
): Promise<SingleSignOn> {
  const { issuer, publicUrl, rules, graceSeconds, name, contact, checkEveryMs } = settings
  // Its own key, which is stored encrypted, so that a change of the key of the installation leaves sessions as they are.
  const box = createSecretBox(await store.secrets.getOrCreate('person_key', randomBytes(32).toString('base64url')))
  const provider = new Provider({ ...settings, redirectUri: publicUrl + CALLBACK_PATH })
  const nowMs = (): number => clock.wallMs()
  const people = new People({
    store,
    clock,
    provider,
    box,
    issuer,
    rules,
    graceSeconds,
    onEvent,
    ...(checkEveryMs !== undefined && { checkEveryMs }),
  })
  const tend = (): void => {
    people.tend(store.configuration().tokens.values()).catch((err: unknown) => {
      // The store reports by itself that it is unavailable.
      if (!(err instanceof StoreUnavailable)) onEvent({ problem: 'people could not be asked about at the identity provider', err })
    })
  }
  const timer = setInterval(tend, TEND_EVERY_MS)
  timer.unref()
  tend()
  return {
    name,
    contact,
    issuer,
    people,
    logins: new Logins(people, box, nowMs),
    commandLine: new CommandLineLogins(store.documents, nowMs),
    close: () => clearInterval(timer),
  }
}
