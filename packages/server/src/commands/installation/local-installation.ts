// Reads what a command finds on its own machine: the settings in the environment, and the key next to the store's file. The key is only
// compared or copied, and never shown.

import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Config, readConfig } from '../../config.ts'
import type * as Maintenance from '../../installation/maintenance.ts'
import { createSecretBox } from '../../secrets/secret-box.ts'
import { type Call, CommandProblem, EXIT, UsageProblem } from '../line/command.ts'

/** The settings as `serve` would read them from this environment, with --store if the command has that flag. */
export function localConfig({ env, flag }: Call): Config {
  const store = flag('store')
  const result = readConfig(env, store === undefined ? {} : { store })
  if (result.kind === 'config') return result.config
  throw new UsageProblem(result.problems.map(({ message }) => message).join('\n'))
}

/** Works on the store of a stopped service. A problem that a person can fix ends the command with its message. */
export async function maintain<T>(work: (maintenance: typeof Maintenance) => Promise<T>): Promise<T> {
  const maintenance = await import('../../installation/maintenance.ts')
  return work(maintenance).catch((error: unknown) => {
    if (error instanceof maintenance.MaintenanceProblem) throw new CommandProblem(error.message, EXIT.failed, { cause: error })
    throw error
  })
}

export type LocalKey = { from: 'environment' | 'file'; path: string | null; key: string }

/** The key that a service in this environment would use; undefined if there is none. */
export function localKey(config: Config, storePath: string): LocalKey | undefined {
  if (config.secretKey !== null) return { from: 'environment', path: null, key: config.secretKey }
  const path = resolve(`${storePath}.key`)
  if (!existsSync(path)) return undefined
  try {
    const key = readFileSync(path, 'utf8').trim()
    return key === '' ? undefined : { from: 'file', path, key }
  } catch (error) {
    throw new CommandProblem(`Cannot read ${path}: ${(error as Error).message}.`)
  }
}

/** Whether the key can decrypt secrets that are encrypted with keys of these ids. */
export function canDecrypt({ key }: LocalKey, secretKeyIds: readonly string[]): boolean {
  const { keyId } = createSecretBox(key)
  return secretKeyIds.every((id) => id === keyId)
}
