// What the code of one integration sees of its process: environment variables and access keys that belong to that destination. The hosts of
// different destinations share a process, so a value is not set for the process. It is bound to the asynchronous context of a run, as in
// AsyncLocalStorage, and code that reads `process.env` outside of this run does not see it, also while the run waits for an answer.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { JsonObject } from '@switchyard/protocol'
import { environmentOf } from './host-settings.ts'

export interface AwsKeys {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

export interface HostValues {
  env: Record<string, string>
  /** Null if the settings have none. */
  aws: AwsKeys | null
}

const current = new AsyncLocalStorage<HostValues>()
let isInstalled = false

export function hostValuesOf(slug: string, settings: Readonly<JsonObject>): HostValues {
  const { awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsSessionToken: sessionToken } = settings
  const aws =
    typeof accessKeyId === 'string' && typeof secretAccessKey === 'string'
      ? { accessKeyId, secretAccessKey, ...(typeof sessionToken === 'string' && sessionToken !== '' && { sessionToken }) }
      : null
  return { env: environmentOf(slug, settings), aws }
}

/** Runs code of the integration that these values belong to. */
export function withHostValues<T>(values: HostValues, run: () => T): T {
  installEnvironment()
  // What a run assigns to its own variables is for this run alone.
  return current.run({ ...values, env: { ...values.env } }, run)
}

/** The access keys of the integration whose code is running. */
export function currentAwsKeys(): AwsKeys | null {
  return current.getStore()?.aws ?? null
}

/** `process.env` stays what it is, except that a run also sees its own variables, and only by their names: they cannot be listed. */
function installEnvironment(): void {
  if (isInstalled) return
  isInstalled = true
  const ownerOf = (target: NodeJS.ProcessEnv, name: string | symbol): NodeJS.ProcessEnv => {
    const env = current.getStore()?.env
    return env !== undefined && Object.hasOwn(env, name) ? env : target
  }
  process.env = new Proxy(process.env, {
    get: (target, name): unknown => Reflect.get(ownerOf(target, name), name),
    has: (target, name) => Reflect.has(ownerOf(target, name), name),
    // Without the proxy as the receiver: process.env refuses the incomplete descriptor that an assignment to the proxy would define.
    set: (target, name, value) => {
      const owner = ownerOf(target, name)
      return Reflect.set(owner, name, owner === target ? value : String(value))
    },
    deleteProperty: (target, name) => Reflect.deleteProperty(ownerOf(target, name), name),
  })
}
