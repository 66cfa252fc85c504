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

function check(name: string, state: Check['state'], message: string, advice: string | null = null, ms?: number): Check {
  return { name, state, message, advice, ...(ms === undefined ? {} : { ms }) }
}

function checkConfiguration({ env, flag }: Call): { config: Config | null; checks: Check[] } {
  const store = flag('store')
  const result = readConfig(env, store === undefined ? {} : { store })
  const name = 'configuration'
  if (result.kind === 'problems') {
    const advice = 'Correct the setting before you start the service in this environment.'
    return { config: null, checks: result.problems.map(({ message }) => check(name, 'bad', message, advice)) }
  }
  const warnings = result.warnings.map((message) => check(name, 'warning', message))
  const good = check(name, 'good', 'The settings in this environment are valid.')
  return { config: result.config, checks: warnings.length > 0 ? warnings : [good] }
}

async function checkService(call: Call): Promise<{ reached: boolean; checks: Check[] }> {
  const beforeMs = Date.now()
  try {
    const url = call.api.url
    const answer = await call.api.get('/api/diagnostics')
    // The service reads its clock at the end of its checks.
    const behindMs = Date.now() - Date.parse(String(answer['at']))
    const theirs = String(answer['version'])
    const responds = `The service at ${url} responds: version ${theirs}, started at ${String(answer['startedAt'])}.`
    const differs = `The service has version ${theirs}, but this command has version ${VERSION}.`
    const checks = [
      check('service', 'good', responds, null, Date.now() - beforeMs),
      ...(VERSION === theirs ? [] : [check('version', 'warning', differs, 'Use the same version of both.')]),
      checkClocks(behindMs),
    ]
    return { reached: true, checks: [...checks, ...(answer['checks'] as unknown as Check[])] }
  } catch (error) {
    if (!(error instanceof CommandProblem) || call.signal.aborted) throw error
    const reached = error instanceof ApiProblem
    const advice = !reached
      ? 'Start the service with `switchyard serve`, or give the URL of a running one with --url.'
      : error.status >= 500
        ? 'Check the log of the service.'
        : 'Set SWITCHYARD_TOKEN to an admin token.'
    return { reached, checks: [check('service', 'bad', error.message, advice)] }
  }
}

function checkClocks(behindMs: number, whose = 'the service'): Check {
  const name = 'clock_difference'
  if (Math.abs(behindMs) <= CLOCK_TOLERANCE_MS) return check(name, 'good', `The clock of ${whose} and the local clock agree.`)
  const message = `The clock of ${whose} is ${Math.round(Math.abs(behindMs) / 1_000)} s ${behindMs > 0 ? 'behind' : 'ahead of'} the local clock.`
  return check(name, 'warning', message, 'Synchronise both with NTP. Receivers reject signatures with a timestamp that is far off.')
}

// ── Without a service ───────────────────────────────────────────────────────────────────────────────────────────────

const NO_STORE_ADVICE = 'If there should be one, correct SWITCHYARD_STORE. The first start of a service creates the store.'

async function checkFile(config: Config): Promise<Check[]> {
  if (config.store.kind !== 'sqlite') return checkServer(config.store.url)
  const path = resolve(config.store.path)
  if (!existsSync(path)) return [check('store', 'warning', `There is no store at ${path}.`, NO_STORE_ADVICE)]
  const { inspectStoreFile, isStoreInUse } = await import('../../installation/maintenance.ts')
  if (isStoreInUse(path)) {
    const advice = 'A service uses this store, but not at the URL above. Give its URL with --url.'
    return [check('store', 'warning', `${path} is in use.`, advice)]
  }
  const key = localKey(config, config.store.path)
  const startedAtMs = performance.now()
  const integrity = 'store_integrity'
  try {
    const inspection = await inspectStoreFile(path, FILE_DEADLINE_MS)
    const ms = Math.round(performance.now() - startedAtMs)
    if (inspection === undefined)
      return [check(integrity, 'unknown', `Reading ${path} took longer than ${FILE_DEADLINE_MS / 60_000} minutes.`, null, ms)]
    const { problems, recount, secretKeyIds } = inspection
    if (problems.length > 0) {
      const advice = 'Keep the damaged file, and restore the latest good backup.'
      return [check(integrity, 'bad', `${path} is damaged: ${problems.slice(0, 3).join('; ')}.`, advice, ms)]
    }
    const unequal = bookProblems(inspection)
    const differs = `The ledger differs from a recount of the rows: ${unequal.slice(0, 3).join('; ')}.`
    return [
      check(integrity, 'good', `${path} is intact.`, null, ms),
      unequal.length === 0
        ? check('ledger', 'good', `The ledger matches a recount of the rows: ${counted(recount.length, 'destination')}.`)
        : check('ledger', 'bad', differs, 'This is a bug. Keep a copy of the file, and report it.'),
      ...checkKey(key, `${path}.key`, secretKeyIds),
    ]
  } catch (error) {
    const advice = 'Check that it is a Switchyard store and that you have permission to read it.'
    return [check(integrity, 'bad', `Cannot read ${path}: ${(error as Error).message}.`, advice)]
  }
}

async function checkServer(url: string): Promise<Check[]> {
  const { inspectServer, placeOfServer } = await import('../../installation/maintenance.ts')
  const place = placeOfServer(url)
  try {
    const { facts, nodes } = await inspectServer(url)
    const { used, max } = facts.connections
    const responds = `PostgreSQL ${facts.version} at ${place} responds; ${used} of ${max} connections are in use.`
    return [check('store', 'good', responds), checkClocks(-facts.clockAheadMs, 'PostgreSQL'), checkNodes(place, nodes)]
  } catch (error) {
    const advice = 'Check that the server is running, and that host, port, user, password and database are correct.'
    return [check('store', 'bad', `The store at ${place} cannot be used: ${(error as Error).message}.`, advice)]
  }
}

/** `nodes` is null if the database has no store. */
function checkNodes(place: string, nodes: readonly { name: string }[] | null): Check {
  const warn = (message: string, advice: string): Check => check('nodes', 'warning', message, advice)
  if (nodes === null) return warn(`There is no Switchyard store in ${place}.`, NO_STORE_ADVICE)
  if (nodes.length === 0)
    return warn('No node is running.', 'Start one with `switchyard serve`. The ledger can be checked only through a node.')
  const names = nodes.map(({ name }) => name).join(', ')
  return warn(`These nodes are running: ${names}.`, 'Give the URL of one of them with --url to check the rest.')
}

function checkKey(key: ReturnType<typeof localKey>, path: string, secretKeyIds: readonly string[]): Check[] {
  const bad = (message: string, advice: string): Check[] => [check('secret_key', 'bad', message, advice)]
  if (key === undefined) {
    if (secretKeyIds.length === 0) return []
    const advice = `Restore it to ${path}, or set SWITCHYARD_SECRET_KEY to it.`
    return bad('The key that decrypts the stored secrets was not found.', advice)
  }
  const where = key.path ?? 'SWITCHYARD_SECRET_KEY'
  if (!canDecrypt(key, secretKeyIds)) {
    const advice = 'Find the right key: the service does not start with this one.'
    return bad(`The key in ${where} is not the one that encrypts the stored secrets.`, advice)
  }
  const mode = key.path === null ? 0 : statSync(key.path).mode & 0o777
  if ((mode & 0o077) !== 0 && process.platform !== 'win32') {
    const message = `Other users can read the key that encrypts stored secrets: ${key.path} has mode ${mode.toString(8)}.`
    return bad(message, `Run chmod 600 ${key.path}`)
  }
  return [check('secret_key', 'good', `The key in ${where} decrypts the stored secrets.`)]
}

function show({ out }: Call, { state, message, advice }: Check): void {
  const signs = { good: ['green', '✔'], warning: ['yellow', '!'], bad: ['red', '✘'], unknown: ['dim', '?'] } as const
  const [style, sign] = signs[state]
  out.line(`${out.paint(style, sign)} ${out.inForm(message)}`)
  if (advice !== null) out.line(`    ${out.paint('dim', '→')} ${out.inForm(advice)}`)
}
