// Entry of the cluster benchmark: the service on PostgreSQL with one to four nodes, against graphile-worker on the
// same server and against SQLite in the same run; the cost of an event and of a claim; and the time until the work of a killed node is delivered. It writes into the repository only the file that --markdown names.

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { machineText, targetsText } from '../client/report.ts'
import { numberText, type Spread, spreadOf, spreadText, tableText } from '../client/table.ts'
import type { PerformanceTarget } from '../client/targets.ts'
import { startPostgres } from '../service/environment/databases.ts'
import { EVENTS_PER_REQUEST } from '../service/environment/events.ts'
import { createRoundRunner, type Round } from '../service/environment/rounds.ts'
import { CONNECTIONS, type Load } from '../service/environment/traffic.ts'
import { installPeers } from '../service/install.ts'
import { noiseText } from '../service/report.ts'
import { type DeliveryRun, measureDelivery } from '../service/scenarios/delivery.ts'
import { loadText } from '../service/targets.ts'
import { type ClaimsRun, measureClaims } from './claims.ts'
import { type Competitor, createCompetitors, createStores, type Key, NODES } from './programs.ts'
import { measureTrips, type TripsRun } from './round-trips.ts'
import { measureTakeover, type TakeoverRun } from './takeover.ts'

const SCENARIOS = ['delivery', 'stores', 'trips', 'claims', 'takeover'] as const
type Scenario = (typeof SCENARIOS)[number]
/** All numbers of events in delivery are multiples of it. */
const EVENTS_UNIT = 3_000

const HELP = `Measures the service on PostgreSQL: against graphile-worker and SQLite, with one to four nodes, the cost of an event and of a claim, and the
time until the work of a killed node is delivered.

usage: npm run bench:cluster -- [options]

  --rounds N       rounds of each part (5)
  --quick          2 rounds, fewer events: checks that it runs; the numbers are not reliable
  --before FOLDER  a checkout of an earlier commit, with its dependencies: delivery is measured against it, without the peers
  --per-request N  messages per request in delivery (15)
  --only NAME,…    scenarios: ${SCENARIOS.join(', ')} (repeatable)
  --tries N        repeat a run that other work disturbed, up to N runs in all (3)
  --check          exit 1 when a target is missed or a run failed
  --markdown FILE  write the report there as well
  --help           this text

bench/cluster/table-bloat.ts measures how the tables grow over time.
`

const options = readOptions()
if (options.help) {
  process.stdout.write(HELP)
  process.exit()
}
const only = (options.only ?? []).flatMap((names) => names.split(','))
const unknown = only.filter((name) => !SCENARIOS.includes(name as Scenario))
const rounds = Number(options.rounds ?? (options.quick ? 2 : 5))
const tries = Number(options.tries)
if (![rounds, tries].every((count) => Number.isInteger(count) && count >= 1) || unknown.length > 0) {
  console.error(
    unknown.length > 0
      ? `unknown scenario: ${unknown.join(', ')}; the scenarios are ${SCENARIOS.join(', ')}`
      : '--rounds and --tries must be whole numbers of at least 1',
  )
  process.exit(2)
}
const perRequest = Number(options['per-request'])
if (!Number.isInteger(perRequest) || perRequest < 1 || EVENTS_UNIT % perRequest !== 0) {
  console.error(`--per-request must be a divisor of ${EVENTS_UNIT}, not ${options['per-request']}`)
  process.exit(2)
}
const load: Load = { eventsPerRequest: perRequest, connections: CONNECTIONS }
const isWanted = (part: Scenario): boolean => only.length === 0 || only.includes(part)
const DELIVERY_EVENTS = options.quick ? 9_000 : 60_000
const TRIPS_EVENTS = options.quick ? 6_000 : 30_000
const PENDING = options.quick ? 50_000 : 1_000_000
/** One event per request, with few and with many connections, and batches: the loads at which the two stores are compared. */
const STORE_LOADS: Load[] = [
  { eventsPerRequest: 1, connections: CONNECTIONS },
  { eventsPerRequest: 1, connections: 64 },
  { eventsPerRequest: EVENTS_PER_REQUEST, connections: CONNECTIONS },
]
const SINGLE_STORE_FACTOR = 0.5
/** Per process. If two processes shared it, they would be measured while their code is still being compiled. */
const WARM_UP_EVENTS = 12_000

const machine = machineText()
installPeers()
const postgres = await startPostgres()
const roundRunner = createRoundRunner(options.quick ? 1 : tries)
const competitors = createCompetitors(postgres, options.before)
const stores = createStores(postgres)
let delivery: Round<Key, DeliveryRun>[] = []
const byLoad = new Map<Load, Round<Key, DeliveryRun>[]>()
const trips: TripsRun[] = []
let claims: ClaimsRun | undefined
const takeovers: TakeoverRun[] = []

if (isWanted('delivery')) {
  delivery = await roundRunner.run('delivery', '', rounds, measured(competitors, load))
}
if (isWanted('stores')) {
  for (const each of STORE_LOADS) byLoad.set(each, await roundRunner.run('stores', loadText(each), rounds, measured(stores, each)))
}
if (isWanted('trips')) {
  for (const eventsPerRequest of [15, 1]) {
    const run = await roundRunner.attempt('trips', `${eventsPerRequest} per request`, () =>
      measureTrips(postgres, TRIPS_EVENTS, eventsPerRequest),
    )
    if (run) trips.push(run)
  }
}
if (isWanted('claims')) claims = await roundRunner.attempt('claims', `${PENDING} pending`, () => measureClaims(postgres, PENDING, rounds))
if (isWanted('takeover')) {
  for (let round = 1; round <= rounds; round += 1) {
    const run = await roundRunner.attempt('takeover', `round ${round}`, () => measureTakeover(postgres))
    if (run) takeovers.push(run)
  }
}
await postgres.stop()

const judged = targets()
const report = [
  '# Cluster benchmark',
  machine,
  `- ${postgres.version} on the same machine, fsync and synchronous_commit on`,
  'Median (min–max) of the rounds; ratios are computed within a round. One sender, one receiver, `track` events of 700 bytes, ' +
    `${perRequest} per request.`,
  '## Targets',
  targetsText(judged),
  ...section('delivery', 'In → durable → POST out → outcome durable', deliveryText),
  ...section('stores', 'PostgreSQL beside SQLite', storesText),
  ...section('trips', 'Database cost per event, one node under load', tripsText),
  ...section('claims', 'A claim beside a dead destination', claimsText),
  ...section('takeover', 'After kill -9 of a node, until what it held is delivered', takeoverText),
  ...(roundRunner.failures.length > 0 ? ['## Failed runs', roundRunner.failures.map((failure) => `- ${failure}`).join('\n')] : []),
].join('\n\n')
console.log(report)
if (options.markdown) writeFileSync(options.markdown, `${report}\n`)
process.exit(options.check && (roundRunner.failures.length > 0 || judged.some(({ isMet }) => isMet === false)) ? 1 : 0)

function measured(programs: Competitor[], sent: Load) {
  return programs.map((program) => ({
    key: program.key,
    measure: () => measureDelivery(program, DELIVERY_EVENTS, program.processes * WARM_UP_EVENTS, sent),
  }))
}

function targets(): PerformanceTarget[] {
  const toTuned = NODES.map((key) => ratios(key, 'graphile-worker-tuned'))
  const best = toTuned.reduce((a, b) => ((b?.median ?? 0) > (a?.median ?? 0) ? b : a), undefined)
  const oneToGraphile = ratios('one', 'graphile-worker')
  const twoToOne = ratios('two', 'one')
  const oneToBefore = ratios('one', 'before')
  const worst = trips.length === 0 ? undefined : Math.max(...trips.map(({ tripsPerEvent }) => tripsPerEvent))
  const claimRatio = claims && spreadOf(claims.withMs.map((ms, at) => ms / (claims?.withoutMs[at] ?? Number.NaN)))
  const byOther = spreadOf(takeovers.map(({ byOtherMs }) => byOtherMs / 1_000))
  const afterReady = spreadOf(takeovers.map(({ afterReadyMs }) => afterReadyMs / 1_000))
  return [
    target(
      'in → durable → out → recorded, one node',
      '≥ 2 × graphile-worker on the same server',
      spread(oneToGraphile),
      oneToGraphile && oneToGraphile.median >= 2,
    ),
    target(
      'in → durable → out → recorded, the best number of nodes',
      '≥ 3 × graphile-worker, tuned',
      best === undefined ? '–' : `${spread(best)} with ${NODES[toTuned.indexOf(best)]}`,
      best && best.median >= 3,
    ),
    ...(oneToBefore === undefined
      ? []
      : [
          target(
            'one node: in → out, compared with the other checkout',
            '≥ 0.97 × before',
            spread(oneToBefore),
            oneToBefore.median >= 0.97,
          ),
        ]),
    ...[...byLoad].map(([each, of]) => {
      const toSqlite = ratios('one', 'sqlite', of)
      const isSingle = each.eventsPerRequest === 1
      const needed = isSingle ? `≥ ${SINGLE_STORE_FACTOR} × SQLite` : 'no target'
      return target(
        `one node, ${loadText(each)}`,
        needed,
        spread(toSqlite),
        isSingle ? toSqlite && toSqlite.median >= SINGLE_STORE_FACTOR : undefined,
      )
    }),
    target('two nodes and the database on the same cores', 'no slower than one node', spread(twoToOne), twoToOne && twoToOne.median >= 1),
    target(
      'round trips per event at load',
      '≤ 0.2',
      worst === undefined ? '–' : numberText(worst, 3),
      worst === undefined ? undefined : worst <= 0.2,
    ),
    target(
      `a claim with ${numberText(PENDING, 0)} pending for a dead destination`,
      '≤ 1.2 × with none',
      spread(claimRatio),
      claimRatio && claimRatio.median <= 1.2,
    ),
    target('kill -9 of a node: another node delivers what it held', '≤ 2 s', spread(byOther, 's'), byOther && byOther.median <= 2),
    target(
      'kill -9 of the only node and a restart: it delivers what it held, after it is ready',
      '≤ 2 s',
      spread(afterReady, 's'),
      afterReady && afterReady.median <= 2,
    ),
  ]
}

function target(what: string, needed: string, measured: string, isMet: boolean | undefined): PerformanceTarget {
  return { what, needed, measured, isMet }
}

function spread(of: Spread | undefined, unit = '×'): string {
  return of === undefined ? '–' : `${spreadText(of, 2)} ${unit}`
}

function ratios(one: Key, other: Key, of = delivery): Spread | undefined {
  return spreadOf(
    of.flatMap((round) => {
      const [mine, its] = [round.get(one), round.get(other)]
      return mine && its ? [mine.eventsPerSecond / its.eventsPerSecond] : []
    }),
  )
}

/** CPU time per event of graphile-worker, divided by that of this program; both include the CPU time of the database. */
function cpuRatios(key: Key): Spread | undefined {
  const cpu = (run: DeliveryRun) => run.cpuUsPerEvent + run.databaseCpuUsPerEvent
  return spreadOf(
    delivery.flatMap((round) => {
      const [mine, its] = [round.get(key), round.get('graphile-worker-tuned')]
      return mine && its ? [cpu(its) / cpu(mine)] : []
    }),
  )
}

function deliveryText(): string {
  const rows = competitors.map(({ key, title }) => {
    const runs = delivery.flatMap((round) => round.get(key) ?? [])
    const of = (value: (run: DeliveryRun) => number): string => spreadText(spreadOf(runs.map(value)), 0)
    const complaints = [...new Set(runs.flatMap((run) => run.complaints))]
    const twice = runs.reduce((sum, run) => sum + run.duplicates, 0)
    return [
      title,
      String(runs.length),
      of((run) => run.eventsPerSecond),
      spreadText(ratios(key, 'graphile-worker'), 2),
      spreadText(ratios(key, 'graphile-worker-tuned'), 2),
      of((run) => run.acknowledgedPerSecond),
      of((run) => run.cpuUsPerEvent),
      of((run) => run.databaseCpuUsPerEvent),
      spreadText(cpuRatios(key), 2),
      of((run) => run.peakRssBytes / 1e6),
      `${complaints.length === 0 ? 'all' : complaints.join(', ')}, ${twice > 0 ? `${twice} twice` : 'each once'}`,
    ]
  })
  const head = [
    'Program',
    'Rounds',
    'Events/s',
    '× graphile',
    '× tuned',
    'Acknowledged/s',
    'CPU µs/event',
    'Database µs',
    'CPU of tuned ÷ own CPU',
    'Peak MB',
    'Received',
  ]
  return tableText(head, rows, (column) => column === 0 || column === head.length - 1)
}

function storesText(): string {
  const rows = [...byLoad].flatMap(([each, of]) =>
    stores.map(({ key, title }) => {
      const runs = of.flatMap((round) => round.get(key) ?? [])
      const median = (value: (run: DeliveryRun) => number): string => spreadText(spreadOf(runs.map(value)), 0)
      return [
        loadText(each),
        title,
        String(runs.length),
        median((run) => run.eventsPerSecond),
        spreadText(ratios(key, 'sqlite', of), 2),
        median((run) => run.cpuUsPerEvent),
        median((run) => run.databaseCpuUsPerEvent),
        median((run) => run.peakRssBytes / 1e6),
      ]
    }),
  )
  const head = ['Load', 'Program', 'Rounds', 'Events/s', '× SQLite', 'CPU µs/event', 'Database µs', 'Peak MB']
  return tableText(head, rows, (column) => column < 2)
}

function tripsText(): string {
  const rows = trips.map((run) => [
    String(run.eventsPerRequest),
    numberText(run.eventsPerSecond, 0),
    numberText(run.tripsPerEvent, 3),
    numberText(run.commitsPerEvent, 3),
    numberText(run.inserted, 2),
    numberText(run.updated, 3),
    numberText(run.deleted, 2),
    numberText(run.walBytesPerEvent, 0),
  ])
  return tableText(['Events per request', 'Events/s', 'Round trips', 'Commits', 'Rows inserted', 'updated', 'deleted', 'WAL bytes'], rows)
}

function claimsText(): string {
  if (claims === undefined) return 'Not run.'
  const ms = (values: number[]): string => spreadText(spreadOf(values), 2)
  return tableText(
    ['Pending for the dead destination', 'Median ms of a claim'],
    [
      ['0', ms(claims.withoutMs)],
      [numberText(claims.pending, 0), ms(claims.withMs)],
    ],
  )
}

function takeoverText(): string {
  const seconds = (value: (run: TakeoverRun) => number): string => spreadText(spreadOf(takeovers.map((run) => value(run) / 1_000)), 2)
  return tableText(
    ['Delivered by', 'Seconds since the kill', 'Seconds since it was ready'],
    [
      ['another node', seconds((run) => run.byOtherMs), '–'],
      ['the same node, restarted at once', seconds((run) => run.restartedMs), seconds((run) => run.afterReadyMs)],
    ],
  )
}

function section(part: Scenario, title: string, text: () => string): string[] {
  return isWanted(part) ? [`## ${title}`, text(), noiseText(roundRunner.noise.get(part) ?? [])] : []
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        rounds: { type: 'string' },
        tries: { type: 'string', default: '3' },
        'per-request': { type: 'string', default: String(EVENTS_PER_REQUEST) },
        quick: { type: 'boolean', default: false },
        before: { type: 'string' },
        only: { type: 'string', multiple: true },
        check: { type: 'boolean', default: false },
        markdown: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}
