// Measures what a new user waits for: from `git clone` to the first delivered webhook, with `npm start` in between, and how much disk space it takes. It clones
// commits of this repository, in turns, so that other load on the machine affects all alike. npm's cache is used as it is: run it
// twice, and the second run measures the installation rather than the network.
//
//   npm run bench:start [-- COMMIT …] [--rounds N]       default: HEAD, 1 round

import { execFileSync, spawn } from 'node:child_process'
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

const root = join(import.meta.dirname, '..', '..')
const TOKEN = 'token-of-the-benchmark'
const DEADLINE_MS = 600_000

interface Run {
  cloneS: number
  /** From the start of `npm start` to the end of npm ci, as its next line of output shows. */
  installS: number
  listenS: number
  webhookS: number
  totalS: number
  packages: number
  megabytes: number
}

const { values, positionals } = parseArgs({ options: { rounds: { type: 'string', default: '1' } }, allowPositionals: true })
const commits = positionals.length > 0 ? positionals : ['HEAD']
const runs = new Map<string, Run[]>(commits.map((commit) => [commit, []]))
for (let round = 1; round <= Number(values.rounds); round += 1)
  for (const commit of commits) {
    const run = await measure(commit)
    runs.get(commit)?.push(run)
    console.log(`round ${round}, ${commit}: ${run.totalS.toFixed(1)} s`)
  }

console.log('\n| Commit | Clone | Install | Build, listen | First webhook | Total | Packages | node_modules |')
console.log('|---|--:|--:|--:|--:|--:|--:|--:|')
for (const [commit, all] of runs) {
  const least = (name: keyof Run): number => Math.min(...all.map((run) => run[name]))
  const times = (['cloneS', 'installS', 'listenS', 'webhookS', 'totalS'] as const).map((name) => `${least(name).toFixed(1)} s`)
  console.log(`| ${commit} | ${times.join(' | ')} | ${least('packages')} | ${least('megabytes')} MB |`)
}
console.log(`\nThe minimum of each column over ${values.rounds} rounds.`)

async function measure(commit: string): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-bench-start-'))
  const hash = execFileSync('git', ['rev-parse', commit], { cwd: root, encoding: 'utf8' }).trim()
  const began = performance.now()
  const passed = (): number => (performance.now() - began) / 1_000
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', root, folder])
  execFileSync('git', ['checkout', '--quiet', hash], { cwd: folder })
  const cloneS = passed()

  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|SWITCHYARD_|NODE_)/i.test(name)))
  const child = spawn('npm', ['start'], {
    cwd: folder,
    env: { ...env, SWITCHYARD_PORT: '0', SWITCHYARD_ADMIN_TOKEN: TOKEN, SWITCHYARD_LOG: 'warn' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Its own group, so that npm, its shell and the service can be ended together.
    detached: true,
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const deadline = setTimeout(() => process.kill(-(child.pid as number), 'SIGKILL'), DEADLINE_MS)
  try {
    let installS = 0
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (/^(Fetching the pinned|Building the dashboard)/.test(line) && installS === 0) installS = passed() - cloneS
    })
    const url = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        const [, found] = /listens on (\S+)/.exec(line) ?? []
        if (found !== undefined) resolve(found)
      })
      child.once('close', () => reject(new Error(`${commit}: npm start ended before the service listened`)))
    })
    const listening = passed()
    await deliver(url)
    const totalS = passed()
    const { packages, bytes } = sizeOf(join(folder, 'node_modules'))
    return {
      cloneS,
      installS,
      listenS: listening - cloneS - installS,
      webhookS: totalS - listening,
      totalS,
      packages,
      megabytes: Math.round(bytes / 1e6),
    }
  } finally {
    clearTimeout(deadline)
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), 'SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Adds a source and a webhook, sends one message, and waits until it is delivered. */
async function deliver(url: string): Promise<void> {
  const receiver = createServer()
  const arrived = new Promise<void>((resolve) =>
    receiver.on('request', (request, response) => {
      request.resume()
      response.end()
      resolve()
    }),
  )
  receiver.listen(0, '127.0.0.1')
  await new Promise((resolve) => receiver.once('listening', resolve))
  const post = async (path: string, authorization: string, body: object): Promise<Record<string, unknown>> => {
    const headers = { authorization, 'content-type': 'application/json' }
    const answer = await fetch(new URL(path, url), { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as Record<string, unknown>
  }
  const source = await post('/api/sources', `Bearer ${TOKEN}`, { name: 'bench' })
  const target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  await post('/api/destinations', `Bearer ${TOKEN}`, { name: 'bench', urls: [target], sourceIds: [source['id']] })
  await post('/v1/track', `Basic ${btoa(`${(source['writeKeys'] as string[])[0]}:`)}`, { userId: 'u-1', event: 'First' })
  await arrived
  receiver.closeAllConnections()
  receiver.close()
}

function sizeOf(folder: string): { packages: number; bytes: number } {
  let [packages, bytes] = [0, 0]
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) bytes += lstatSync(path).size
    // A package's own manifest, not one of the folders in it.
    if (entry.name === 'package.json' && /node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+$/.test(entry.parentPath)) packages += 1
  }
  return { packages, bytes }
}
