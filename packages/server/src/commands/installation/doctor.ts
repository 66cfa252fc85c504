// `switchyard doctor`: what is wrong with an installation, and what to do about it. The service looks at itself; this adds what
// only somebody outside can see: the settings here, whether it answers, and how the clocks differ. Where no service answers,
// the store is looked at instead, and only read: a SQLite file as a whole, a server as far as it tells of itself.

import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { ledgerProblems } from '../../api/check-ledger.ts'
import { type Config, readConfig } from '../../config.ts'
import { VERSION } from '../../version.ts'
import { type Call, type Command, CommandProblem, EXIT } from '../line/command.ts'
import { ApiProblem } from '../service/api.ts'
import { localKey, opens } from './local-installation.ts'

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
  summary: 'Checks configuration, store, ledger, clock, disk, and whether each destination can be reached',
  details:
    'Every check says what it found and what to do next. No request is sent to a receiver: its name is looked up, its address judged, a connection made and closed. Where no service answers, the store itself is checked instead, without changing it. The exit code is 1 when something is wrong; a warning alone does not count.',
  flags: { store: { placeholder: 'ADDRESS', sentence: 'The store to look at where no service answers.', variable: 'SWITCHYARD_STORE' } },
  examples: ['switchyard doctor', 'switchyard doctor --json'],
  async run(call) {
    const configuration = checkConfiguration(call)
    const checks: Check[] = [...configuration.checks]
    const asked = await ask(call)
    checks.push(...asked.checks)
    if (!asked.reached && configuration.config !== null) checks.push(...(await checkFile(configuration.config)))
    const bad = checks.filter(({ state }) => state === 'bad').length
    const warnings = checks.filter(({ state }) => state === 'warning').length
    if (call.json) call.out.json({ ok: bad === 0, checks })
    else {
      for (const check of checks) show(call, check)
      call.out.line(
        bad === 0
          ? `Nothing is wrong${warnings > 0 ? `, but ${count(warnings, 'thing')} to look at` : ''}.`
          : `${count(bad, 'thing')} wrong.`,
      )
    }
    return bad === 0 ? EXIT.ok : EXIT.failed
  },
}

function checkConfiguration({ env, flag }: Call): { config: Config | null; checks: Check[] } {
  const store = flag('store')
  const result = readConfig(env, store === undefined ? [] : ['--store', store])
  const name = 'configuration'
  if (result.kind === 'problems') {
    const advice = 'Correct it before the service is started from this environment.'
    return { config: null, checks: result.problems.map(({ message }) => ({ name, state: 'bad', message, advice })) }
  }
  if (result.kind !== 'config') return { config: null, checks: [] }
  const warnings: Check[] = result.warnings.map((message) => ({ name, state: 'warning', message, advice: null }))
  const good: Check = { name, state: 'good', message: 'The settings in this environment are well-formed.', advice: null }
  return { config: result.config, checks: warnings.length > 0 ? warnings : [good] }
}

async function ask(call: Call): Promise<{ reached: boolean; checks: Check[] }> {
  const beforeMs = Date.now()
  try {
    const url = call.api.url
    const answer = await call.api.get('/api/diagnostics')
    // What it says the time is, it said at the end of its checks.
    const behindMs = Date.now() - Date.parse(String(answer['at']))
    const own = VERSION
    const theirs = String(answer['version'])
    const checks: Check[] = [
      {
        name: 'service',
        state: 'good',
        message: `The service at ${url} answers: version ${theirs}, started at ${String(answer['startedAt'])}.`,
        advice: null,
        ms: Date.now() - beforeMs,
      },
      ...(own === theirs
        ? []
        : [
            {
              name: 'version',
              state: 'warning',
              message: `The service is version ${theirs}, this command ${own}.`,
              advice: 'Use the same version of both.',
            } as const,
          ]),
      checkClocks(behindMs),
    ]
    return { reached: true, checks: [...checks, ...(answer['checks'] as unknown as Check[])] }
  } catch (error) {
    if (!(error instanceof CommandProblem) || call.signal.aborted) throw error
    const reached = error instanceof ApiProblem
    const advice = reached ? 'Give an admin token as SWITCHYARD_TOKEN.' : 'Start it with `switchyard serve`, or name it with --url.'
    return {
      reached,
      checks: [
        { name: 'service', state: 'bad', message: error.message, advice: reached && error.status >= 500 ? 'Look in its log.' : advice },
      ],
    }
  }
}

function checkClocks(behindMs: number, whose = 'the service'): Check {
  const name = 'clock_difference'
  if (Math.abs(behindMs) <= CLOCK_TOLERANCE_MS)
    return { name, state: 'good', message: `The clock of ${whose} and the one here agree.`, advice: null }
  const message = `The clock of ${whose} is ${Math.round(Math.abs(behindMs) / 1_000)} s ${behindMs > 0 ? 'behind' : 'ahead of'} the one here.`
  return {
    name,
    state: 'warning',
    message,
    advice: 'One of them is wrong: have both kept by NTP. Receivers refuse signatures whose time is far off.',
  }
}

// ── Without a service ───────────────────────────────────────────────────────────────────────────────────────────────

async function checkFile(config: Config): Promise<Check[]> {
  if (config.store.kind !== 'sqlite') return checkServer(config.store.url)
  const path = resolve(config.store.path)
  if (!existsSync(path)) {
    const advice = 'If there should be one, correct SWITCHYARD_STORE; a first start creates it.'
    return [{ name: 'store', state: 'warning', message: `There is no store at ${path}.`, advice }]
  }
  const { inspectStoreFile, isStoreInUse } = await import('../../installation/maintenance.ts')
  if (isStoreInUse(path)) {
    const advice = 'A service runs on it, but not at the address above: give its own with --url.'
    return [{ name: 'store', state: 'warning', message: `${path} is in use.`, advice }]
  }
  const checks: Check[] = []
  const key = localKey(config, config.store.path)
  const startedAtMs = performance.now()
  try {
    const inspection = await inspectStoreFile(path, FILE_DEADLINE_MS)
    const ms = Math.round(performance.now() - startedAtMs)
    if (inspection === undefined)
      return [{ name: 'store_integrity', state: 'unknown', message: `${path} was not read to its end in time.`, advice: null, ms }]
    const { problems, ledger, recount, secretKeyIds } = inspection
    if (problems.length > 0)
      return [
        {
          name: 'store_integrity',
          state: 'bad',
          message: `${path} is damaged: ${problems.slice(0, 3).join('; ')}.`,
          advice: 'Keep the file, and restore the last good backup.',
          ms,
        },
      ]
    checks.push({ name: 'store_integrity', state: 'good', message: `${path} is whole.`, advice: null, ms })
    const unequal = ledgerProblems(ledger, recount)
    const advice = 'This must never happen. Keep a copy of the file as it is, and report it.'
    checks.push(
      unequal.length === 0
        ? {
            name: 'ledger',
            state: 'good',
            message: `The ledger matches a recount of the rows: ${count(recount.length, 'destination')}.`,
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
      message: `${path} cannot be read: ${(error as Error).message}.`,
      advice: 'Is it a store of Switchyard, and may you read it?',
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
    const answers: Check = {
      name,
      state: 'good',
      message: `PostgreSQL ${facts.version} at ${place} answers; ${used} of ${max} connections are in use.`,
      advice: null,
    }
    const clocks = checkClocks(-facts.clockAheadMs, 'PostgreSQL')
    if (nodes === null) {
      const advice = 'If there should be one, correct SWITCHYARD_STORE; a first start creates it.'
      return [answers, clocks, { name: 'nodes', state: 'warning', message: `There is no store of Switchyard in ${place}.`, advice }]
    }
    const told = nodes.map((node) => node.name).join(', ')
    const alive: Check =
      nodes.length === 0
        ? { name: 'nodes', state: 'warning', message: 'No node is alive.', advice: 'Start one. The ledger is checked through a node.' }
        : {
            name: 'nodes',
            state: 'warning',
            message: `Nodes are alive: ${told}.`,
            advice: 'Name one of them with --url, to have the rest checked.',
          }
    return [answers, clocks, alive]
  } catch (error) {
    const advice = 'Does it run, and are host, port, user, password and database right?'
    return [{ name, state: 'bad', message: `The store at ${place} cannot be used: ${(error as Error).message}.`, advice }]
  }
}

function checkKey(key: ReturnType<typeof localKey>, path: string, secretKeyIds: readonly string[]): Check[] {
  const name = 'secret_key'
  if (key === undefined) {
    if (secretKeyIds.length === 0) return []
    const advice = `Put it back at ${path}, or give it in SWITCHYARD_SECRET_KEY.`
    return [{ name, state: 'bad', message: 'The key that opens the stored secrets is not here.', advice }]
  }
  if (!opens(key, secretKeyIds)) {
    const where = key.path ?? 'SWITCHYARD_SECRET_KEY'
    return [
      {
        name,
        state: 'bad',
        message: `The key in ${where} is not the one that the stored secrets are encrypted with.`,
        advice: 'Find the right one: a start with this one is refused.',
      },
    ]
  }
  const mode = key.path === null ? 0 : statSync(key.path).mode & 0o777
  if ((mode & 0o077) !== 0 && process.platform !== 'win32')
    return [
      {
        name,
        state: 'bad',
        message: `Others can read the key that encrypts stored secrets: ${key.path} has mode ${mode.toString(8)}.`,
        advice: `chmod 600 ${key.path}`,
      },
    ]
  return [{ name, state: 'good', message: `The key in ${key.path ?? 'SWITCHYARD_SECRET_KEY'} opens the stored secrets.`, advice: null }]
}

function show({ out }: Call, { state, message, advice }: Check): void {
  const signs = { good: ['green', '✔'], warning: ['yellow', '!'], bad: ['red', '✘'], unknown: ['dim', '?'] } as const
  const [style, sign] = signs[state]
  out.line(`${out.paint(style, sign)} ${message}`)
  if (advice !== null) out.line(`    ${out.paint('dim', '→')} ${advice}`)
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
