// `npm run demo`: the real service on a temporary file, three receivers, and the traffic of an imaginary shop, so that the dashboard has
// something to show. Everything that is started here is also stopped here, in order, whether the demo ends because of a key, a signal,
// --duration, or because the service process died.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commandForm } from '../../packages/server/src/installation/command-form.ts'
import { buildDashboard } from '../build-dashboard.ts'
import { count, type LedgerRow, type Parts, printFinalReport, untilSettled } from './final-report.ts'
import { openBrowser } from './open-browser.ts'
import { HELP, MAX_RATE, type Options, parseOptions } from './options.ts'
import { flaky, Receiver } from './receivers.ts'
import { DemoProblem, type ServiceProcess, startService } from './service-process.ts'
import { Random, Shop } from './shop.ts'
import { openTerminal, type Terminal } from './terminal.ts'
import { Traffic } from './traffic.ts'
import { type DestinationName, SHORT_WINDOW_MS, wire } from './wiring.ts'

const SEED = 20_26
const STATUS_EVERY_MS = 1_000
const FLUSH_MS = 10_000
/** The flush timeout of the traffic if the service has died. */
const FLUSH_AFTER_DEATH_MS = 50
/** A SIGINT that arrives at least this much later than the first is a second Ctrl-C. */
const SECOND_CTRL_C_MS = 700
const LONGEST_TIMER_MS = 2 ** 31 - 1
const RATES = [1, 2, 5, 10, 20, 50, 100, 200, MAX_RATE]

const parsed = parseOptions(process.argv.slice(2), process.env)
if ('help' in parsed) process.stdout.write(HELP)
else if ('problem' in parsed) {
  process.stderr.write(`${parsed.problem}. To list the options, run: npm run demo -- --help\n`)
  process.exitCode = 2
} else process.exitCode = await run(parsed.options)

async function run(options: Options): Promise<number> {
  let ask: (why: 'asked' | 'time') => void = () => {}
  const asked = new Promise<'asked' | 'time'>((resolve) => {
    ask = resolve
  })
  let askedAtMs = Number.POSITIVE_INFINITY
  let atOnce = (): void => {}
  const onSignal = (signal: NodeJS.Signals = 'SIGINT'): void => {
    // A second Ctrl-C ends the demo at once. One Ctrl-C can arrive twice at nearly the same time: from the terminal and from the parent
    // process. Other signals are repeated by parent processes too, so they never end it at once.
    if (signal === 'SIGINT' && performance.now() - askedAtMs > SECOND_CTRL_C_MS) atOnce()
    askedAtMs = Math.min(askedAtMs, performance.now())
    ask('asked')
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)

  const steer: { key: (key: string) => void } = { key: () => {} }
  let terminal: Terminal | undefined
  let folder: string | undefined
  await using stack = new AsyncDisposableStack()
  try {
    if (!buildDashboard()) throw new DemoProblem('The dashboard could not be built. The reason is printed above.')
    folder = makeFolder(options.keep)
    const place = folder
    if (options.keep === null) stack.defer(() => rmSync(place, { recursive: true, force: true }))

    const moods = { isFlaky: true }
    const receivers: Record<DestinationName, Receiver> = {
      warehouse: new Receiver(() => ({ status: 200 })),
      crm: new Receiver(flaky(new Random(SEED), () => moods.isFlaky)),
      reporting: new Receiver(() => ({ status: 200 })),
    }
    // Deferred before the receivers, so that it stops after them: with no receiver to wait for, the service stops quickly.
    let service: ServiceProcess | undefined
    stack.defer(() => service?.stop())
    for (const receiver of Object.values(receivers)) {
      await receiver.start()
      stack.defer(() => receiver.stop())
    }
    // It was started only to get a port, and now refuses connections there.
    await receivers.reporting.stop()
    service = await startService(place, { port: options.port, isOurs: options.keep === null })
    const started = service
    const died = started.ended.then((how) => ({ how }))
    atOnce = () => {
      started.kill()
      if (options.keep === null) rmSync(place, { recursive: true, force: true })
      process.exit(1)
    }

    const wiring = await wire(service, receivers)
    const problems = new Set<string>()
    const shop = new Shop(SEED)
    const traffic = new Traffic(service, shop, {
      writeKeys: wiring.writeKeys,
      rate: options.rate,
      onFailure: (what) => problems.add(what),
    })
    // In a normal shutdown the traffic has already stopped. If the service has died, waiting for responses is pointless.
    stack.defer(() => traffic.stop(FLUSH_AFTER_DEATH_MS))
    const imported = await traffic.importHistory()
    const parts: Parts = { service, wiring, receivers, traffic }

    terminal = openTerminal(process.stdout, process.stdin, (key) => steer.key(key))
    const shown = terminal
    stack.defer(() => shown.close())
    // The chart of the last hour has one bar per minute; in the chart of a day, the demo would be a single bar.
    const address = `${service.url}/?period=1h#token=${service.token}`
    const isOpened = options.open && process.stdout.isTTY && openBrowser(address)
    introduce(shown, parts, { address, imported, isOpened, keep: options.keep === null ? null : place })
    traffic.start()
    steer.key = keys(parts, shop, shown, moods, onSignal)
    if (options.durationMs !== null) setTimeout(ask, Math.min(options.durationMs, LONGEST_TIMER_MS), 'time').unref()

    const startedMs = Date.now()
    const ticker = setInterval(() => void showStatus(parts, shown, startedMs, moods), STATUS_EVERY_MS)
    stack.defer(() => clearInterval(ticker))

    const end = await Promise.race([asked, died])
    clearInterval(ticker)
    steer.key = (key) => void (key === '\x03' && onSignal())
    shown.status('')
    if (typeof end === 'object') throw new DemoProblem(`The service stopped unexpectedly (${end.how}).${lastLogLine(place)}`)

    askedAtMs = Math.min(askedAtMs, performance.now())
    shown.line('Stopping the traffic, waiting for deliveries in flight, then stopping the service.')
    shown.line()
    const holds = await Promise.race([shutDown(parts, shown, moods), died.then(({ how }) => how)])
    if (typeof holds === 'string') throw new DemoProblem(`The service stopped unexpectedly (${holds}).${lastLogLine(place)}`)
    for (const problem of problems) shown.line(`  ${shown.red('!')} ${problem}`)
    await stack.disposeAsync()
    shown.line(options.keep === null ? '  The demo has ended. Its temporary data was deleted.' : describeKeptData(place, started.token))
    return holds ? 0 : 1
  } catch (error) {
    terminal?.close()
    if (!(error instanceof DemoProblem)) throw error
    process.stderr.write(`${error.message}\n`)
    return 1
  }
}

function makeFolder(keep: string | null): string {
  try {
    if (keep === null) return mkdtempSync(join(tmpdir(), 'switchyard-demo-'))
    // npm changes to the root of the repository; INIT_CWD is the directory in which the command was typed.
    const folder = resolve(process.env['INIT_CWD'] ?? '', keep)
    mkdirSync(folder, { recursive: true })
    if (readdirSync(folder).length > 0) throw new DemoProblem(`${folder} is not empty. Choose an empty or new folder for --keep.`)
    return folder
  } catch (error) {
    if (error instanceof DemoProblem) throw error
    const where = keep ?? tmpdir()
    const advice = keep === null ? 'Set TMPDIR to a folder that you can write to, or use --keep DIR.' : 'Choose another folder.'
    throw new DemoProblem(`Cannot store data in ${where} (${(error as NodeJS.ErrnoException).code}). ${advice}`)
  }
}

function introduce(
  terminal: Terminal,
  { service, wiring, traffic }: Parts,
  { address, imported, isOpened, keep }: { address: string; imported: number; isOpened: boolean; keep: string | null },
): void {
  const { line, bold, dim } = terminal
  const { url, token } = service
  const { sources, destinations } = wiring
  const command = commandForm()
  const rows = (list: [string, string][]): void => {
    for (const [name, text] of list) line(`  ${name.padEnd(15)}${text}`)
  }
  line()
  line(bold('Switchyard demo: the traffic of an imaginary shop'))
  line()
  line(`  ${bold('Dashboard')}      ${address}`)
  line(dim(`                 ${isOpened ? 'opened in your browser; ' : ''}this link logs you in`))
  line()
  rows([
    ['Warehouse', 'healthy receiver: accepts everything, in batches of up to 50.'],
    ['CRM', 'flaky receiver: 500, 503 and slow responses. Its filter denies pages, screens and product views.'],
    [
      'Old reporting',
      `dead receiver. Its retry window is ${SHORT_WINDOW_MS / 1_000} s instead of 4 hours, so that you see deliveries expire.`,
    ],
  ])
  line()
  line(dim('  Every request is signed, and the receivers verify the signatures. The demo begins with an import'))
  line(dim(`  of ${imported} messages from the last three hours; charts count them at the time of the import.`))
  if (keep !== null) line(dim(`  The data is in ${keep}.`))
  line()
  line(bold('Seven things to try'))
  line()
  line(`  1  See what is failing        ${url}/destinations/${destinations.reporting}`)
  line(`  2  Fix the dead receiver      ${press(terminal, 'r')}: the backlog is delivered`)
  line(`  3  Replay expired deliveries  ${url}/deliveries?state=expired`)
  line(`  4  See rejected calls         ${url}/sources/${sources.app}`)
  line(`  5  Trace an order             export SWITCHYARD_URL=${url}`)
  line(`                                export SWITCHYARD_TOKEN=${token}`)
  line(`                                ${command} trace ${traffic.example?.messageId ?? 'MESSAGE_ID'}`)
  line(`  6  Plan your events           ${url}/events shows which events arrive. In the terminal of step 5:`)
  line(`                                ${command} plan learn --source 'Mobile app' --from 1h --out plan.yaml`)
  line(`                                ${command} plan apply plan.yaml`)
  line(`                                ${press(terminal, 'v')}: version 5.0.0 of the app sends wrong orders`)
  line(`                                ${command} plan violations --source 'Mobile app'`)
  line(`                                ${command} plan types plan.yaml --out analytics.gen.ts`)
  line(`  7  Get an alert               ${command} listen --connect --source system`)
  line(
    `                                ${press(terminal, 's')}: the shop closes. If it was open for 5 minutes, you get Source Silent about 5 minutes later`,
  )
  line()
  if (terminal.isInteractive) {
    line(dim('  r start/stop the dead receiver   f turn failures of the flaky receiver on/off   + - rate   q quit'))
    line(dim('  v faulty or correct app          s close or open the shop'))
  } else line(dim('  Press Ctrl-C to stop.'))
  line()
}

function press({ isInteractive }: Terminal, key: string): string {
  return isInteractive ? `press ${key} here` : `run the demo in a terminal and press ${key}`
}

function keys(
  { service, wiring, receivers, traffic }: Parts,
  shop: Shop,
  terminal: Terminal,
  moods: { isFlaky: boolean },
  quit: () => void,
): (key: string) => void {
  const { reporting } = receivers
  const toggle = async (): Promise<void> => {
    if (reporting.isUp) {
      await reporting.stop()
      return terminal.line('Old reporting refuses connections again. Its circuit breaker opens after ten failures.')
    }
    try {
      await reporting.start()
    } catch {
      return terminal.line(`Cannot start Old reporting: another program now uses port ${reporting.port}.`)
    }
    const path = `/destinations/${wiring.destinations.reporting}/health`
    const { nextAttemptAt } = await service.api<{ nextAttemptAt: string | null }>('GET', path).catch(() => ({ nextAttemptAt: null }))
    const seconds = nextAttemptAt === null ? 0 : Math.ceil((Date.parse(nextAttemptAt) - Date.now()) / 1_000)
    const when = seconds > 1 ? ` in ${seconds} s` : ''
    terminal.line(`Old reporting accepts connections again. After the next probe${when}, its backlog is delivered.`)
  }
  const change = (by: 1 | -1): void => {
    const further = RATES.filter((rate) => (rate - traffic.rate) * by > 0)
    traffic.rate = (by === 1 ? further[0] : further.at(-1)) ?? traffic.rate
    terminal.line(`Sending ${traffic.rate} messages per second.`)
  }
  return (key) => {
    switch (key) {
      case 'r':
        return void toggle()
      case 'f':
        moods.isFlaky = !moods.isFlaky
        return terminal.line(moods.isFlaky ? 'CRM fails now and then again.' : 'CRM responds normally from now on.')
      case 'v':
        shop.hasFaultyApp = !shop.hasFaultyApp
        return terminal.line(
          shop.hasFaultyApp
            ? 'Version 5.0.0 of the mobile app is out. It sends the total of an order as text, and no currency.'
            : 'The mobile app is fixed: orders have a number as total, and a currency.',
        )
      case 's':
        traffic.isPaused = !traffic.isPaused
        return terminal.line(traffic.isPaused ? 'The shop is closed: it sends nothing.' : 'The shop is open again.')
      case '+':
      case '=':
        return change(1)
      case '-':
        return change(-1)
      // In raw mode, Ctrl-C and Ctrl-D arrive as characters.
      case 'q':
      case '\x03':
      case '\x04':
        return quit()
    }
  }
}

async function showStatus(
  { service, traffic }: Parts,
  terminal: Terminal,
  startedMs: number,
  { isFlaky }: { isFlaky: boolean },
): Promise<void> {
  try {
    const from = encodeURIComponent(new Date(startedMs - 60_000).toISOString())
    const [ledger, stats] = await Promise.all([
      service.api<{ data: LedgerRow[] }>('GET', '/ledger'),
      service.api<{ data: { retried?: number }[] }>('GET', `/stats?step=1m&from=${from}`),
    ])
    const sum = (column: 'delivered' | 'pending' | 'failed' | 'expired'): string =>
      count(ledger.data.reduce((total, row) => total + row[column], 0))
    const retried = stats.data.reduce((total, point) => total + (point.retried ?? 0), 0)
    const seconds = Math.round((Date.now() - startedMs) / 1_000)
    const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    terminal.status(
      `${clock}  ${traffic.rate}/s  sent ${count(traffic.sent)}  accepted ${count(traffic.acknowledged.size)}  delivered ${sum('delivered')}  ` +
        `retried ${count(retried)}  pending ${sum('pending')}  failed ${sum('failed')}  expired ${sum('expired')}${isFlaky ? '' : '  (CRM failures off)'}`,
    )
  } catch {
    // The service is stopping or has died, which is reported elsewhere.
  }
}

async function shutDown(parts: Parts, terminal: Terminal, moods: { isFlaky: boolean }): Promise<boolean> {
  // Makes the flaky receiver respond quickly, so that the shutdown does not wait for it.
  moods.isFlaky = false
  await parts.traffic.stop(FLUSH_MS)
  parts.receivers.crm.hurry()
  await untilSettled(parts)
  return await printFinalReport(parts, terminal)
}

function lastLogLine(folder: string): string {
  const [line] = readFileSync(join(folder, 'service.log'), 'utf8').trim().split('\n').slice(-1)
  return line === undefined || line === '' ? '' : ` The last line of its log: ${line}`
}

function describeKeptData(folder: string, token: string): string {
  return `  The data is in ${folder}. To open it again (log in with the token ${token}), run:\n  npm start -- --store sqlite:${join(folder, 'switchyard.db')}`
}
