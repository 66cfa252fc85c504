// `switchyard doctor`: finds problems of an installation and says how to fix them. The service checks itself; this command adds what can
// only be seen from outside: the local settings, whether the service responds, and clock differences. If no service responds, the store
// is inspected read-only instead: a SQLite file completely, a PostgreSQL server by its own statistics.

import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { bookProblems } from '../../api/check-ledger.ts'
import { counted } from '../../api/counted.ts'
import { VERSION } from '../../api/version.ts'
import { type Config, readConfig } from '../../config.ts'
import { type Call, type Command, CommandProblem, EXIT } from '../line/command.ts'
import { ApiProblem } from '../service/api.ts'
import { canDecrypt, localKey } from './local-installation.ts'

interface Check {
  name: string
  state: 'good' | 'warning' | 'bad' | 'unknown'
  message: string
  advice: string | null
  destinationId?: string | null
  url?: string | null
  ms?: number
}

const CLOCK_TOLERANCE_MS = 5_000
const FILE_DEADLINE_MS = 30 * 60_000

export const doctor: Command = {
  name: 'doctor',
  summary: 'Check the configuration, store, ledger, clocks, disk, and whether destinations are reachable',
  details:
    'Every check says what it found and what to do next. No request is sent to a receiver: its host name is resolved, its address is checked against the address policy, and a connection is opened and closed again. For an integration, the settings and the subscriptions are checked and its code is loaded. If no service responds, the store itself is checked instead, without changing it. The exit code is 1 if a check fails; warnings do not count.',
  flags: { store: { placeholder: 'ADDRESS', description: 'The store to check if no service responds.', variable: 'SWITCHYARD_STORE' } },
  examples: ['switchyard doctor', 'switchyard doctor --json'],
  async run(call) {
    const configuration = checkConfiguration(call)
    const checks: Check[] = [...configuration.checks]
    const service = await checkService(call)
    checks.push(...service.checks)
    if (!service.reached && configuration.config !== null) checks.push(...(await checkFile(configuration.config)))
    const bad = checks.filter(({ state }) => state === 'bad').length
    const warnings = checks.filter(({ state }) => state === 'warning').length
    if (call.json) call.out.json({ ok: bad === 0, checks })
    else {
      for (const check of checks) show(call, check)
      call.out.line(
        bad === 0
          ? `No problems found${warnings > 0 ? `, ${counted(warnings, 'warning')}` : ''}.`
          : `${counted(bad, 'problem')} found${warnings > 0 ? `, ${counted(warnings, 'warning')}` : ''}.`,
      )
    }
    return bad === 0 ? EXIT.ok : EXIT.failed
  },
}

function checkConfiguration({ env, flag }: Call): { config: Config | null; checks: Check[] } {
  const store = flag('store')
  const result = readConfig(env, store === undefined ? {} : { store })
  const name = 'configuration'
  if (result.kind === 'problems') {
    const advice = 'Correct the setting before you start the service in this environment.'
    return { config: null, checks: result.problems.map(({ message }) => ({ name, state: 'bad', message, advice })) }
  }
  const warnings: Check[] = result.warnings.map((message) => ({ name, state: 'warning', message, advice: null }))
  const good: Check = { name, state: 'good', message: 'The settings in this environment are valid.', advice: null }
  return { config: result.config, checks: warnings.length > 0 ? warnings : [good] }
}

async function checkService(call: Call): Promise<{ reached: boolean; checks: Check[] }> {
  const beforeMs = Date.now()
  try {
    const url = call.api.url
    const answer = await call.api.get('/api/diagnostics')
    // The service reads its clock at the end of its checks.
    const behindMs = Date.now() - Date.parse(String(answer['at']))
    const own = VERSION
    const theirs = String(answer['version'])
    const checks: Check[] = [
      {
        name: 'service',
        state: 'good',
        message: `The service at ${url} responds: version ${theirs}, started at ${String(answer['startedAt'])}.`,
        advice: null,
        ms: Date.now() - beforeMs,
      },
      ...(own === theirs
        ? []
        : [
            {
              name: 'version',
              state: 'warning',
              message: `The service has version ${theirs}, but this command has version ${own}.`,
              advice: 'Use the same version of both.',
            } as const,
          ]),
      checkClocks(behindMs),
    ]
    return { reached: true, checks: [...checks, ...(answer['checks'] as unknown as Check[])] }
  } catch (error) {
    if (!(error instanceof CommandProblem) || call.signal.aborted) throw error
    const reached = error instanceof ApiProblem
    const advice = reached
      ? 'Set SWITCHYARD_TOKEN to an admin token.'
      : 'Start the service with `switchyard serve`, or give the URL of a running one with --url.'
    return {
      reached,
      checks: [
        {
          name: 'service',
          state: 'bad',
          message: error.message,
          advice: reached && error.status >= 500 ? 'Check the log of the service.' : advice,
        },
      ],
    }
  }
}

function checkClocks(behindMs: number, whose = 'the service'): Check {
  const name = 'clock_difference'
  if (Math.abs(behindMs) <= CLOCK_TOLERANCE_MS)
    return { name, state: 'good', message: `The clock of ${whose} and the local clock agree.`, advice: null }
  const message = `The clock of ${whose} is ${Math.round(Math.abs(behindMs) / 1_000)} s ${behindMs > 0 ? 'behind' : 'ahead of'} the local clock.`
  return {
    name,
    state: 'warning',
    message,
    advice: 'Synchronise both with NTP. Receivers reject signatures with a timestamp that is far off.',
  }
}

// ── Without a service ───────────────────────────────────────────────────────────────────────────────────────────────

async function checkFile(config: Config): Promise<Check[]> {
  if (config.store.kind !== 'sqlite') return checkServer(config.store.url)
  const path = resolve(config.store.path)
  if (!existsSync(path)) {
    const advice = 'If there should be one, correct SWITCHYARD_STORE. The first start of a service creates the store.'
    return [{ name: 'store', state: 'warning', message: `There is no store at ${path}.`, advice }]
  }
  const { inspectStoreFile, isStoreInUse } = await import('../../installation/maintenance.ts')
  if (isStoreInUse(path)) {
    const advice = 'A service uses this store, but not at the URL above. Give its URL with --url.'
    return [{ name: 'store', state: 'warning', message: `${path} is in use.`, advice }]
  }
  const checks: Check[] = []
  const key = localKey(config, config.store.path)
  const startedAtMs = performance.now()
  try {
    const inspection = await inspectStoreFile(path, FILE_DEADLINE_MS)
    const ms = Math.round(performance.now() - startedAtMs)
    if (inspection === undefined)
      return [
        {
          name: 'store_integrity',
          state: 'unknown',
          message: `Reading ${path} took longer than ${FILE_DEADLINE_MS / 60_000} minutes.`,
          advice: null,
          ms,
        },
      ]
    const { problems, recount, secretKeyIds } = inspection
    if (problems.length > 0)
      return [
        {
          name: 'store_integrity',
          state: 'bad',
          message: `${path} is damaged: ${problems.slice(0, 3).join('; ')}.`,
          advice: 'Keep the damaged file, and restore the latest good backup.',
          ms,
        },
      ]
    checks.push({ name: 'store_integrity', state: 'good', message: `${path} is intact.`, advice: null, ms })
    const unequal = bookProblems(inspection)
    const advice = 'This is a bug. Keep a copy of the file, and report it.'
    checks.push(
      unequal.length === 0
        ? {
            name: 'ledger',
            state: 'good',
            message: `The ledger matches a recount of the rows: ${counted(recount.length, 'destination')}.`,
            advice: null,
          }
        : {
            name: 'ledger',
            state: 'bad',
            message: `The ledger differs from a recount of the rows: ${unequal.slice(0, 3).join('; ')}.`,
            advice,
          },
    )
    checks.push(...checkKey(key, `${path}.key`, secretKeyIds))
  } catch (error) {
    checks.push({
      name: 'store_integrity',
      state: 'bad',
      message: `Cannot read ${path}: ${(error as Error).message}.`,
      advice: 'Check that it is a Switchyard store and that you have permission to read it.',
    })
  }
  return checks
}

async function checkServer(url: string): Promise<Check[]> {
  const { inspectServer, placeOfServer } = await import('../../installation/maintenance.ts')
  const name = 'store'
  const place = placeOfServer(url)
  try {
    const { facts, nodes } = await inspectServer(url)
    const { used, max } = facts.connections
    const responds: Check = {
      name,
      state: 'good',
      message: `PostgreSQL ${facts.version} at ${place} responds; ${used} of ${max} connections are in use.`,
      advice: null,
    }
    const clocks = checkClocks(-facts.clockAheadMs, 'PostgreSQL')
    if (nodes === null) {
      const advice = 'If there should be one, correct SWITCHYARD_STORE. The first start of a service creates the store.'
      return [responds, clocks, { name: 'nodes', state: 'warning', message: `There is no Switchyard store in ${place}.`, advice }]
    }
    const names = nodes.map((node) => node.name).join(', ')
    const alive: Check =
      nodes.length === 0
        ? {
            name: 'nodes',
            state: 'warning',
            message: 'No node is running.',
            advice: 'Start one with `switchyard serve`. The ledger can be checked only through a node.',
          }
        : {
            name: 'nodes',
            state: 'warning',
            message: `These nodes are running: ${names}.`,
            advice: 'Give the URL of one of them with --url to check the rest.',
          }
    return [responds, clocks, alive]
  } catch (error) {
    const advice = 'Check that the server is running, and that host, port, user, password and database are correct.'
    return [{ name, state: 'bad', message: `The store at ${place} cannot be used: ${(error as Error).message}.`, advice }]
  }
}

function checkKey(key: ReturnType<typeof localKey>, path: string, secretKeyIds: readonly string[]): Check[] {
  const name = 'secret_key'
  if (key === undefined) {
    if (secretKeyIds.length === 0) return []
    const advice = `Restore it to ${path}, or set SWITCHYARD_SECRET_KEY to it.`
    return [{ name, state: 'bad', message: 'The key that decrypts the stored secrets was not found.', advice }]
  }
  if (!canDecrypt(key, secretKeyIds)) {
    const where = key.path ?? 'SWITCHYARD_SECRET_KEY'
    return [
      {
        name,
        state: 'bad',
        message: `The key in ${where} is not the one that encrypts the stored secrets.`,
        advice: 'Find the right key: the service does not start with this one.',
      },
    ]
  }
  const mode = key.path === null ? 0 : statSync(key.path).mode & 0o777
  if ((mode & 0o077) !== 0 && process.platform !== 'win32')
    return [
      {
        name,
        state: 'bad',
        message: `Other users can read the key that encrypts stored secrets: ${key.path} has mode ${mode.toString(8)}.`,
        advice: `Run chmod 600 ${key.path}`,
      },
    ]
  return [{ name, state: 'good', message: `The key in ${key.path ?? 'SWITCHYARD_SECRET_KEY'} decrypts the stored secrets.`, advice: null }]
}

function show({ out }: Call, { state, message, advice }: Check): void {
  const signs = { good: ['green', '✔'], warning: ['yellow', '!'], bad: ['red', '✘'], unknown: ['dim', '?'] } as const
  const [style, sign] = signs[state]
  out.line(`${out.paint(style, sign)} ${out.inForm(message)}`)
  if (advice !== null) out.line(`    ${out.paint('dim', '→')} ${out.inForm(advice)}`)
}
