// The tests of the lines that the compatibility page shows for a client, in a separate process.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import type { Attempt } from './node-attempts.ts'
import { installed } from './results.ts'

export function runsAsWritten(client: { installedAs: string }, setup: string): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const { code, stderr } = await run(client, setup, source)
    assert.equal(code, 0, stderr)
    await source.books(1)
  }
}

/** The promise of its own flush rejects and is not handled, so Node.js ends the process. */
export function endsProcessOnWrongKey(client: { installedAs: string }, setup: string, reports: Attempt): Attempt {
  return async (bench) => {
    await reports(bench)
    const { code, stderr } = await run(client, setup, { host: bench.service.url, writeKey: 'no-such-key' })
    assert.equal(code, 1)
    assert.match(stderr, /Unauthorized/)
  }
}

/** Runs the lines of the page in a separate process. Only the key, the address and the name of the package are replaced. */
async function run(
  client: { installedAs: string },
  setup: string,
  { host, writeKey }: { host: string; writeKey: string },
): Promise<{ code: number; stderr: string }> {
  const { name } = installed(client)
  const lines = setup.replace(`'${name}'`, `'${client.installedAs}'`).replace('WRITE_KEY', writeKey).replace('http://localhost:8080', host)
  return new Promise((resolve) => {
    const args = ['--input-type=module', '--eval', lines]
    execFile(process.execPath, args, { cwd: join(import.meta.dirname, '..') }, (error, _, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stderr })
    })
  })
}
