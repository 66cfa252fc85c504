// What the tests of the files in deploy/ share.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig, SETTINGS } from '../../packages/server/src/config.ts'

export const FOLDER = join(import.meta.dirname, '..', '..', 'deploy')
export const VARIABLES = new Set<string>(Object.values(SETTINGS).map(({ variable }) => variable))
/** A name, then a version with at least two numbers in it. */
export const PINNED = /^[a-z0-9./-]+:v?\d+\.\d+[\w.-]*$/

export const textOf = (...path: string[]): string => readFileSync(join(FOLDER, ...path), 'utf8')

/** Checks settings as `serve` does, before anything is opened. */
export function assertTaken(env: Record<string, string>): void {
  const read = readConfig({ SWITCHYARD_STORE: 'postgres://u:p@h/d', ...env })
  assert.equal(read.kind, 'config', JSON.stringify(read))
  if (read.kind !== 'config') return
  assert.deepEqual(read.warnings, [])
  const { privateAddresses, metrics } = read.config
  assert.deepEqual({ privateAddresses, metrics }, { privateAddresses: 'refuse', metrics: 'token' })
}
