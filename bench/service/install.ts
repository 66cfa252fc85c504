// Installs the peers at the versions of this folder's package.json. Later runs need no network.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const BENCH = import.meta.dirname

/** Runs no install scripts: the benchmark needs none of them. */
export function installPeers(): void {
  if (existsSync(join(BENCH, 'node_modules'))) return
  console.error('Installing the peers (npm ci in bench/service) …')
  const args = ['ci', '--prefix', BENCH, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status, error } = spawnSync('npm', args, { cwd: BENCH, stdio: ['ignore', 'ignore', 2] })
  if (status !== 0) throw new Error('npm ci failed in bench/service: see its output above', { cause: error })
}
