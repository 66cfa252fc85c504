// The writing thread's commands about the configuration: sources, destinations, OAuth applications, tokens, secrets, settings.

import type { StoredDestination } from '../../configuration/stored-destination.ts'
import type { ControlToken, OAuthApp, Source, UsedAssertion } from '../../store.ts'
import { writeSetting } from '../schema/settings.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterParts } from '../threads/writer-parts.ts'
import { ControlWriter } from './write-control.ts'
import { OAuthWriter } from './write-oauth.ts'
import { type ResealedSetting, SecretsWriter } from './write-secrets.ts'
import { TokenWriter } from './write-tokens.ts'

export function configurationCommands(parts: WriterParts) {
  const { database } = parts
  const control = new ControlWriter(parts)
  const oauth = new OAuthWriter(database)
  const secrets = new SecretsWriter(database)
  const tokens = new TokenWriter(database)
  return {
    putSource: { run: ({ source, create }: { source: Source; create: boolean }) => control.putSource(source, create) },
    /** With the destinations and applications that named the source, without it. */
    deleteSource: {
      run({ id, destinations, apps }: { id: string; destinations: readonly StoredDestination[]; apps: readonly OAuthApp[] }) {
        for (const destination of destinations) control.putDestination(destination, false)
        for (const app of apps) oauth.put(app, false)
        return control.delete('sources', id)
      },
    },
    putDestination: {
      run: ({ destination, create }: { destination: StoredDestination; create: boolean }) => control.putDestination(destination, create),
    },
    deleteDestination: {
      run({ id }: { id: string }) {
        secrets.forget(id)
        return control.delete('destinations', id)
      },
    },
    /** How many shipments were cancelled. */
    cancelStep: { run: ({ destinationId, atMs }: { destinationId: string; atMs: number }) => control.cancelStep(destinationId, atMs) },
    putOAuthApp: { run: ({ app, create }: { app: OAuthApp; create: boolean }) => oauth.put(app, create) },
    deleteOAuthApp: { run: ({ id }: { id: string }) => oauth.delete(id) },
    /** Whether it was the first use. */
    useAssertion: {
      run: ({ assertion, nowMs }: { assertion: UsedAssertion; nowMs: number }) => oauth.useAssertion(assertion, nowMs),
    },
    createToken: { run: ({ token }: { token: ControlToken }) => tokens.create(token) },
    deleteToken: { run: ({ id }: { id: string }) => tokens.delete(id) },
    useToken: { run: ({ id, atMs }: { id: string; atMs: number }) => tokens.use(id, atMs) },
    /** Answers with what is stored under the name. */
    keepSecret: { run: ({ name, sealed }: { name: string; sealed: string }) => secrets.keep(name, sealed) },
    reseal: {
      run: ({ destinations, settings }: { destinations: readonly StoredDestination[]; settings: readonly ResealedSetting[] }) =>
        secrets.replace(destinations, settings),
    },
    setSetting: { run: ({ name, value }: { name: string; value: string }) => writeSetting(database, name, value) },
  } satisfies Record<string, WriterCommand>
}
