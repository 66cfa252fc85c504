// Entry of the service benchmark: reads the options, runs the scenarios, prints the report. It writes into the repository only
// the file that --markdown names.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { machineText, targetsText } from '../client/report.ts'
import { type Backlog, type BacklogKind, copyOf, createBacklog } from './environment/backlog.ts'
import { startPostgres, startRedis } from './environment/databases.ts'
import { EVENTS_PER_LARGE_REQUEST, EVENTS_PER_REQUEST, MAX_EVENTS_PER_REQUEST, SHORT_EVENT_BYTES } from './environment/events.ts'
import { createFolder } from './environment/processes.ts'
import { createPrograms, type Program, type ProgramName, versionOf } from './environment/programs.ts'
import { createRoundRunner } from './environment/rounds.ts'
import { isServiceThere } from './environment/service.ts'
import { CONNECTIONS, createTraffic, type Load } from './environment/traffic.ts'
import { installPeers } from './install.ts'
import { backlogTargets, backlogText } from './large-backlog-report.ts'
import { orderTargets, orderText } from './order-report.ts'
import { costText, deadText, deliveryText, floodText, idleText, ingestText, NOT_MEASURED, noiseText, saturatedText } from './report.ts'
import { measureCost } from './scenarios/cpu-cost.ts'
import { measureDead, measureStarts } from './scenarios/dead-destination.ts'
import { measureDelivery } from './scenarios/delivery.ts'
import { measureFlood } from './scenarios/flood.ts'
import { measureIdle } from './scenarios/idle-latency.ts'
import { measureIngest } from './scenarios/ingest.ts'
import { type LargeBacklogRun, measureLargeBacklog, STORES, type StoreKind } from './scenarios/large-backlog.ts'
import { measureOrder, ORDER_CASES, type OrderRound } from './scenarios/order.ts'
import { measureSaturated } from './scenarios/saturated.ts'
import { loadText, type Results, targets } from './targets.ts'

const SCENARIOS = ['delivery', 'ingest', 'idle', 'flood', 'cost', 'dead', 'saturated'] as const
/** Run only if --only names them, because they take long. */
const SEPARATE = ['backlog', 'order'] as const
const NAMES = [...SCENARIOS, ...SEPARATE]
type Scenario = (typeof NAMES)[number]
const MAX_CONNECTIONS = 1_000
/** The scenarios that compare two versions. */
const COMPARED: string[] = ['delivery', 'ingest', 'idle', 'order'] satisfies Scenario[]

const HELP = `Compares the service with the limit of its building blocks, graphile-worker, BullMQ and bare Fastify.

usage: node scripts/run.mjs bench/service/run.ts [options]

  --rounds N       rounds of each part (5)
  --quick          2 rounds, fewer events, small backlogs: checks that it runs; the numbers are not reliable
  --sizes N,…      messages per request in delivery and ingest, with 16 connections; NxC means C connections
                   (15; in delivery 1, 1x64, 15 and 1000 without --only, in ingest 1 and 15)
  --before FOLDER  a checkout of an earlier commit, with its dependencies: delivery, ingest and idle are measured against it,
                   beside the two-thread limit and bare Fastify but without the other peers
  --one-core       with --before: run the two versions on the first core only (needs taskset)
  --only NAME,…    scenarios: ${SCENARIOS.join(', ')} (repeatable); ${SEPARATE.join(' and ')} run only if they are named here
  --size N         backlog: the number of deliveries pending for the dead destination (10,000,000)
  --keys N         backlog: the dead destination is ordered, and its deliveries are of this many users
  --store NAME     backlog and order: ${STORES.join(' or ')} (${STORES[0]})
  --keep FOLDER    backlog: keep the filled store there, and use it again in the next run
  --fill-batch N   backlog: events per request while the store is filled (${EVENTS_PER_LARGE_REQUEST})
  --tries N        repeat a run that other work disturbed, up to N runs in all (3)
  --check          exit 1 when a target is missed or a run failed
  --markdown FILE  write the report there as well
  --help           this text
`

const options = readOptions()
if (options.help) {
  process.stdout.write(HELP)
  process.exit()
}
const named = (options.only ?? []).flatMap((names) => names.split(','))
const only = named.length === 0 && options['one-core'] ? COMPARED : named
const unknown = only.filter((name) => !NAMES.includes(name as Scenario))
const rounds = Number(options.rounds ?? (options.quick ? 2 : 5))
const tries = Number(options.tries)
const loadsOf = (text: string): Load[] =>
  text.split(',').map((size) => {
    const [eventsPerRequest, connections = CONNECTIONS] = size.split('x').map(Number)
    return { eventsPerRequest: eventsPerRequest ?? 0, connections }
  })
const loads = loadsOf(options.sizes ?? (only.length === 0 ? '1,1x64,15,1000' : String(EVENTS_PER_REQUEST)))
const ingestLoads = loadsOf(options.sizes ?? (only.length === 0 ? '1,15' : String(EVENTS_PER_REQUEST)))
if (![rounds, tries].every((count) => Number.isInteger(count) && count >= 1) || unknown.length > 0) {
  const complaint =
    unknown.length > 0
      ? `unknown scenario: ${unknown.join(', ')}; the scenarios are ${NAMES.join(', ')}`
      : '--rounds and --tries must be whole numbers of at least 1'
  console.error(complaint)
  process.exit(2)
}
const isWithin = (count: number, most: number): boolean => Number.isInteger(count) && count >= 1 && count <= most
if (!loads.every((load) => isWithin(load.eventsPerRequest, MAX_EVENTS_PER_REQUEST) && isWithin(load.connections, MAX_CONNECTIONS))) {
  console.error(
    `--sizes must be whole numbers from 1 to ${MAX_EVENTS_PER_REQUEST}, separated by commas, each perhaps followed by x and 1 to ${MAX_CONNECTIONS} connections, not ${options.sizes}`,
  )
  process.exit(2)
}
if (options['one-core'] && (options.before === undefined || only.some((name) => !COMPARED.includes(name)))) {
  console.error(`--one-core compares two versions: it needs --before FOLDER, and measures only ${COMPARED.join(', ')}`)
  process.exit(2)
}
if (options['one-core'] && spawnSync('taskset', ['--version']).status !== 0) {
  console.error('Skipped: --one-core needs the command taskset, which is not installed here. It is in the package util-linux.')
  process.exit()
}
const pending = Number(options.size)
const fillBatch = Number(options['fill-batch'])
if (![pending, fillBatch].every((count) => Number.isInteger(count) && count >= 1) || fillBatch > EVENTS_PER_LARGE_REQUEST) {
  console.error(`--size and --fill-batch must be whole numbers of at least 1, and --fill-batch at most ${EVENTS_PER_LARGE_REQUEST}`)
  process.exit(2)
}
const store = STORES.find((name) => name === options.store)
if (store === undefined) {
  console.error(`--store must be ${STORES.join(' or ')}, not ${options.store}`)
  process.exit(2)
}
const keys = options.keys === undefined ? undefined : Number(options.keys)
if (keys !== undefined && !(Number.isInteger(keys) && keys >= 1)) {
  console.error('--keys must be a whole number of at least 1')
  process.exit(2)
}
const isWanted = (part: Scenario): boolean => (only.length === 0 ? !SEPARATE.includes(part as never) : only.includes(part))

// The number of events of a run, and of the warm-up before it.
const SCALE = options.quick ? 0.25 : 1
const DELIVERY_EVENTS = 45_000 * SCALE
const INGEST_EVENTS = 300_000 * SCALE
/** One event per request costs so much more that fewer take as long. */
const SINGLE_INGEST_EVENTS = 60_000 * SCALE
const IDLE_EVENTS = 200 * SCALE
const FLOOD_SECONDS = options.quick ? 8 : 30
const SATURATED_SECONDS = options.quick ? 6 : 20
const COST_EVENTS = 30_000 * SCALE
const WARM_UP_EVENTS = 9_000
const BACKLOG_SIZES = options.quick ? [10, 1_000, 20_000] : [10, 1_000, 1_000_000]
const DEAD_EVENTS = 2_000 * SCALE

const machine = machineText()
installPeers()
const needsPeers = (isWanted('delivery') || isWanted('idle')) && options.before === undefined
const postgres = needsPeers ? await startPostgres() : undefined
const redis = needsPeers ? await startRedis() : undefined
const programs = createPrograms(postgres, redis, options.before, options['one-core'] ? ['taskset', '-c', '0'] : [])
const roundRunner = createRoundRunner(options.quick ? 1 : tries)
const results: Results = {
  delivery: new Map(),
  ingest: new Map(),
  idle: [],
  flood: [],
  backlogs: [],
  cost: { stored: [], pending: [] },
  dead: [],
  starts: undefined,
  saturated: [],
  failures: roundRunner.failures,
}

const competitors = <Run>(names: ProgramName[], measure: (program: Program) => Promise<Run>) =>
  programs.filter(({ name }) => names.includes(name)).map((program) => ({ key: program.name, measure: () => measure(program) }))
const IDLING: ProgramName[] = ['service', 'limit', 'two-thread-limit', 'graphile-worker', 'graphile-worker-tuned', 'bullmq']
/** The programs of the targets for other sizes than the usual one. */
const SIZED: ProgramName[] = ['service', 'two-thread-limit', 'graphile-worker-tuned']
const VERSIONS: ProgramName[] = ['service', 'before']
const LIMITED_VERSIONS: ProgramName[] = [...VERSIONS, 'two-thread-limit']
const isCompared = options.before !== undefined

if (isWanted('delivery')) {
  for (const load of loads) {
    const { eventsPerRequest: size } = load
    const names = isCompared ? LIMITED_VERSIONS : size === EVENTS_PER_REQUEST ? IDLING : SIZED
    const [events, warmUpEvents] = [wholeRequests(DELIVERY_EVENTS, size), wholeRequests(WARM_UP_EVENTS, size)]
    const delivering = competitors(names, (program) => measureDelivery(program, events, warmUpEvents, load))
    results.delivery.set(load, await roundRunner.run('delivery', loadText(load), rounds, delivering))
  }
}
if (isWanted('ingest')) {
  for (const load of ingestLoads) {
    const { eventsPerRequest: size } = load
    const [events, warmUpEvents] = [
      wholeRequests(size === 1 ? SINGLE_INGEST_EVENTS : INGEST_EVENTS, size),
      wholeRequests(WARM_UP_EVENTS, size),
    ]
    const taking = competitors(isCompared ? [...VERSIONS, 'bare-fastify'] : ['service', 'limit', 'bare-fastify'], (program) =>
      measureIngest(program, events, warmUpEvents, load),
    )
    results.ingest.set(load, await roundRunner.run('ingest', loadText(load), rounds, taking))
  }
}
if (isWanted('idle')) {
  const idling = competitors(isCompared ? VERSIONS : IDLING, (program) => measureIdle(program, IDLE_EVENTS))
  results.idle = await roundRunner.run('idle', '', Math.min(rounds, 3), idling)
}
await postgres?.stop()
await redis?.stop()

let large: LargeBacklogRun | undefined
let ordered: OrderRound[] = []
if (isServiceThere()) {
  if (isWanted('flood')) {
    for (const death of ['refusing', 'hanging'] as const) {
      const run = await roundRunner.attempt('flood', death, () => measureFlood(death, FLOOD_SECONDS))
      if (run) results.flood.push(run)
    }
  }
  if (isWanted('saturated')) {
    const saturating = [{ key: 'service' as const, measure: () => measureSaturated(SATURATED_SECONDS) }]
    results.saturated = await roundRunner.run('saturated', '', rounds, saturating)
  }
  if (isWanted('cost') || isWanted('dead')) await roundRunner.attempt('backlogs', '', measureBacklogs)
  if (isWanted('order')) ordered = await measureOrders(store)
  if (isWanted('backlog')) large = await roundRunner.attempt('backlogs', '', () => measureLarge(store))
}

const judged = [...targets(results), ...(large ? backlogTargets(large) : []), ...(ordered.length > 0 ? orderTargets(ordered) : [])]
const report = [
  '# Service benchmark',
  machine,
  [
    `- undici ${versionOf('undici')}, Fastify ${versionOf('fastify')}, graphile-worker ${versionOf('graphile-worker')}`,
    needsPeers ? `- ${[postgres?.version, redis?.version ?? 'no Redis on this machine, so no BullMQ'].filter(Boolean).join('; ')}` : '',
    isServiceThere() ? '' : '- Only the peers were measured, because packages/server/src/cli.ts does not exist.',
  ]
    .filter(Boolean)
    .join('\n'),
  `Median (min–max) of the rounds; ratios are computed within a round. One sender, one receiver, \`track\` events of 700 bytes, batches of 15
over 16 connections unless a table says otherwise; events in batches of 1,000 have ${SHORT_EVENT_BYTES} bytes.${options['one-core'] ? ' The service ran on one core.' : ''}${
    options.quick ? ' A quick run: fewer events and smaller backlogs than the targets assume.' : ''
  }`,
  '## Targets',
  targetsText(judged),
  ...section('delivery', 'In → durable → POST out → outcome durable', () => deliveryText(programs, results.delivery)),
  ...section('ingest', 'Ingest alone, no destination', () => ingestText(programs, results.ingest)),
  ...section('idle', 'Idle: single events about 50 ms apart', () => idleText(programs, results.idle)),
  ...(isServiceThere()
    ? [
        ...section('flood', 'Flood with a dead destination', () => floodText(results.flood)),
        ...section('cost', 'Cost of an event by the size of the store', () => costText(results)),
        ...section('saturated', 'Delivery while ingest is saturated', () => saturatedText(results.saturated)),
        ...section('dead', 'A healthy destination at 200 events/s beside a dead one', () => deadText(results)),
        ...section('order', `Ordered destinations, on ${store}`, () => orderText(ordered)),
        ...section(
          'backlog',
          `${pending.toLocaleString('en')} deliveries pending for a dead destination${keys === undefined ? '' : `, ordered, of ${keys.toLocaleString('en')} users`}, on ${store}`,
          () => (large ? backlogText(large) : 'Not run.'),
        ),
      ]
    : []),
  ...(results.failures.length > 0 ? ['## Failed runs', results.failures.map((failure) => `- ${failure}`).join('\n')] : []),
  '## Not measured',
  NOT_MEASURED,
].join('\n\n')
console.log(report)
if (options.markdown) writeFileSync(options.markdown, `${report}\n`)
process.exit(options.check && (results.failures.length > 0 || judged.some(({ isMet }) => isMet === false)) ? 1 : 0)

function readOptions() {
  try {
    return parseArgs({
      options: {
        rounds: { type: 'string' },
        tries: { type: 'string', default: '3' },
        quick: { type: 'boolean', default: false },
        before: { type: 'string' },
        only: { type: 'string', multiple: true },
        size: { type: 'string', default: '10000000' },
        keys: { type: 'string' },
        store: { type: 'string', default: STORES[0] },
        keep: { type: 'string' },
        'fill-batch': { type: 'string', default: String(EVENTS_PER_LARGE_REQUEST) },
        sizes: { type: 'string' },
        'one-core': { type: 'boolean', default: false },
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

function wholeRequests(events: number, size: number): number {
  return Math.ceil(events / size) * size
}

function section(part: Scenario, title: string, text: () => string): string[] {
  return isWanted(part) ? [`## ${title}`, text(), noiseText(roundRunner.noise.get(part) ?? [])] : []
}

/** Both scenarios share the stores, because filling one with a million takes a while. */
async function measureBacklogs(): Promise<void> {
  const traffic = await createTraffic()
  const fill = async (kind: BacklogKind, events: number): Promise<Backlog> => {
    const known = results.backlogs.find((candidate) => candidate.kind === kind && candidate.events === events)
    const backlog = known ?? (await createBacklog(traffic, kind, events))
    if (!known) {
      console.error(`filled  ${events} ${kind}  ${backlog.fillSeconds.toFixed(1)} s`)
      results.backlogs.push(backlog)
    }
    return backlog
  }
  try {
    for (const kind of isWanted('cost') ? (['stored', 'pending'] as const) : []) {
      const costing = []
      for (const size of BACKLOG_SIZES) {
        const backlog = await fill(kind, size)
        costing.push({ key: size, measure: () => measureCost(traffic, backlog, COST_EVENTS, WARM_UP_EVENTS) })
      }
      results.cost[kind] = await roundRunner.run('cost', kind, rounds, costing)
    }
    if (!isWanted('dead')) return
    const [none, million] = [await fill('pending', 0), await fill('pending', Math.max(...BACKLOG_SIZES))]
    results.dead = (await roundRunner.attempt('dead', 'latency', () => measureDead(traffic, none, million, rounds, DEAD_EVENTS))) ?? []
    results.starts = await roundRunner.attempt('dead', 'starts', () => measureStarts(traffic, copyOf(none), million.place, rounds))
  } finally {
    await traffic.close()
  }
}

async function measureLarge(kind: StoreKind): Promise<LargeBacklogRun | undefined> {
  const traffic = await createTraffic()
  try {
    return await measureLargeBacklog(traffic, roundRunner, {
      store: kind,
      events: pending,
      eventsPerRequest: fillBatch,
      rounds,
      measuredEvents: COST_EVENTS,
      warmUpEvents: WARM_UP_EVENTS,
      keep: options.keep,
      keys,
    })
  } finally {
    await traffic.close()
  }
}

async function measureOrders(kind: StoreKind): Promise<OrderRound[]> {
  const server = kind === 'postgres' ? await startPostgres({ folder: createFolder() }) : undefined
  const cases = ORDER_CASES.filter(({ isBefore = false }) => !isBefore || isCompared)
  try {
    const measuring = cases.map((one) => ({
      key: one.name,
      measure: () => measureOrder(one, { server, before: options.before, scale: SCALE }),
    }))
    return await roundRunner.run('order', kind, rounds, measuring)
  } finally {
    await server?.stop()
  }
}
