// `npm run demo`: the real service on a temporary file, three receivers, an imaginary shop, and a dashboard full of life. Everything that
// is started here ends here, in order, whatever ends it: a key, a signal, the time that was given, or the service's own death.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { buildDashboard } from '../build-dashboard.ts'
import { closeBooks, count, type LedgerRow, type Parts, untilSettled } from './final-report.ts'
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
const NOBODY_MS = 50
const IMPATIENT_MS = 700
const LONGEST_TIMER_MS = 2 ** 31 - 1
const RATES = [1, 2, 5, 10, 20, 50, 100, 200, MAX_RATE]

const parsed = parseOptions(process.argv.slice(2), process.env)
if ('help' in parsed) process.stdout.write(HELP)
else if ('problem' in parsed) {
  process.stderr.write(`${parsed.problem}. npm run demo -- --help lists the options.\n`)
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
    // A second Ctrl-C is a person losing patience; in the same moment it is the terminal's and the parent's, and so are other signals.
    if (signal === 'SIGINT' && performance.now() - askedAtMs > IMPATIENT_MS) atOnce()
    askedAtMs = Math.min(askedAtMs, performance.now())
    ask('asked')
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)

  const steer: { key: (key: string) => void } = { key: () => {} }
  let terminal: Terminal | undefined
  let folder: string | undefined
  await using stack = new AsyncDisposableStack()
  try {
    if (!buildDashboard()) throw new DemoProblem('The dashboard could not be built: see above.')
    folder = makeFolder(options.keep)
    const place = folder
    if (options.keep === null) stack.defer(() => rmSync(place, { recursive: true, force: true }))

    const moods = { isFlaky: true }
    const receivers: Record<DestinationName, Receiver> = {
      warehouse: new Receiver(() => ({ status: 200 })),
      crm: new Receiver(flaky(new Random(SEED), () => moods.isFlaky)),
      reporting: new Receiver(() => ({ status: 200 })),
    }
    // Stopping the service with nobody left to wait for is quick.
    let service: ServiceProcess | undefined
    stack.defer(() => service?.stop())
    for (const receiver of Object.values(receivers)) {
      await receiver.start()
      stack.defer(() => receiver.stop())
    }
    // It has had its port, and refuses connections there.
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
    const traffic = new Traffic(service, new Shop(SEED), {
      writeKeys: wiring.writeKeys,
      rate: options.rate,
      onFailure: (what) => problems.add(what),
    })
    // In the end there is nothing to stop; when the service has died, nobody to wait for.
    stack.defer(() => traffic.stop(NOBODY_MS))
    const imported = await traffic.importHistory()
    const parts: Parts = { service, wiring, receivers, traffic }

    terminal = openTerminal(process.stdout, process.stdin, (key) => steer.key(key))
    const shown = terminal
    stack.defer(() => shown.close())
    // The last hour is drawn by the minute: a day would be one bar.
    const address = `${service.url}/?period=1h#token=${service.token}`
    const isOpened = options.open && process.stdout.isTTY && openBrowser(address)
    introduce(shown, parts, { address, imported, isOpened, keep: options.keep === null ? null : place })
    traffic.start()
    steer.key = keys(parts, shown, moods, onSignal)
    if (options.durationMs !== null) setTimeout(ask, Math.min(options.durationMs, LONGEST_TIMER_MS), 'time').unref()

    const startedMs = Date.now()
    const ticker = setInterval(() => void showStatus(parts, shown, startedMs, moods), STATUS_EVERY_MS)
    stack.defer(() => clearInterval(ticker))

    const end = await Promise.race([asked, died])
    clearInterval(ticker)
    steer.key = (key) => void (key === '\x03' && onSignal())
    shown.status('')
    if (typeof end === 'object') throw new DemoProblem(`The service ended by itself (${end.how}).${lastWords(place)}`)

    askedAtMs = Math.min(askedAtMs, performance.now())
    shown.line('Stopping: the traffic, then what is on the way, then the service.')
    shown.line()
    const holds = await Promise.race([close(parts, shown, moods), died.then(({ how }) => how)])
    if (typeof holds === 'string') throw new DemoProblem(`The service ended by itself (${holds}).${lastWords(place)}`)
    for (const problem of problems) shown.line(`  ${shown.red('!')} ${problem}`)
    await stack.disposeAsync()
    shown.line(options.keep === null ? '  Nothing is left behind.' : kept(place, started.token))
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
    // npm goes to the root of the repository; what was typed is meant from where it was typed.
    const folder = resolve(process.env['INIT_CWD'] ?? '', keep)
    mkdirSync(folder, { recursive: true })
    if (readdirSync(folder).length > 0) throw new DemoProblem(`${folder} is not empty: --keep takes a folder of its own.`)
    return folder
  } catch (error) {
    if (error instanceof DemoProblem) throw error
    const where = keep ?? tmpdir()
    const advice = keep === null ? 'Set TMPDIR to a folder that can be written, or use --keep DIR.' : 'Choose another folder.'
    throw new DemoProblem(`No data can be kept in ${where} (${(error as NodeJS.ErrnoException).code}). ${advice}`)
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
  const rows = (list: [string, string][]): void => {
    for (const [name, text] of list) line(`  ${name.padEnd(15)}${text}`)
  }
  line()
  line(bold('Switchyard, with an imaginary shop'))
  line()
  line(`  ${bold('Dashboard')}      ${address}`)
  line(dim(`                 ${isOpened ? 'opened in your browser; ' : ''}the link logs you in`))
  line()
  rows([
    ['Warehouse', 'a good receiver. Takes everything, in batches of up to 50.'],
    ['CRM', 'a flaky one: 500, 503, slow answers. Wants no pages, screens and product views.'],
    ['Old reporting', `a dead one. Retries end after ${SHORT_WINDOW_MS / 1_000} s, not four hours: you see some expire.`],
  ])
  line()
  line(dim('  Every request is signed, and the receivers check it. Charts begin now: the first messages are'))
  line(dim(`  an import of ${imported} from the last three hours, and are counted when they arrived.`))
  if (keep !== null) line(dim(`  The data is in ${keep}.`))
  line()
  line(bold('Five things to try'))
  line()
  line(`  1  See what is wrong      ${url}/destinations/${destinations.reporting}`)
  line(
    `  2  Make it well           ${terminal.isInteractive ? 'press r here: what has waited goes out' : 'on a terminal, the key r does it'}`,
  )
  line(`  3  Replay what expired    ${url}/deliveries?state=expired`)
  line(`  4  Why calls are refused  ${url}/sources/${sources.app}`)
  line(`  5  Follow an order        export SWITCHYARD_URL=${url}`)
  line(`                            export SWITCHYARD_TOKEN=${token}`)
  line(`                            npx switchyard trace ${traffic.example?.messageId ?? 'MESSAGE_ID'}`)
  line()
  if (terminal.isInteractive) line(dim('  r dead receiver on/off   f flaky moods on/off   + - rate   q quit'))
  else line(dim('  Ctrl-C ends it.'))
  line()
}

function keys(
  { service, wiring, receivers, traffic }: Parts,
  terminal: Terminal,
  moods: { isFlaky: boolean },
  quit: () => void,
): (key: string) => void {
  const { reporting } = receivers
  const toggle = async (): Promise<void> => {
    if (reporting.isUp) {
      await reporting.stop()
      return terminal.line('Old reporting refuses connections again. Its breaker opens after ten failures.')
    }
    try {
      await reporting.start()
    } catch {
      return terminal.line(`Somebody else has taken port ${reporting.port}: Old reporting stays dead.`)
    }
    const path = `/destinations/${wiring.destinations.reporting}/health`
    const { nextAttemptAt } = await service.api<{ nextAttemptAt: string | null }>('GET', path).catch(() => ({ nextAttemptAt: null }))
    const seconds = nextAttemptAt === null ? 0 : Math.ceil((Date.parse(nextAttemptAt) - Date.now()) / 1_000)
    const when = seconds > 1 ? ` in ${seconds} s` : ''
    terminal.line(`Old reporting is well again. The next probe${when} finds out, and what has waited goes out.`)
  }
  const change = (by: 1 | -1): void => {
    const further = RATES.filter((rate) => (rate - traffic.rate) * by > 0)
    traffic.rate = (by === 1 ? further[0] : further.at(-1)) ?? traffic.rate
    terminal.line(`${traffic.rate} messages a second.`)
  }
  return (key) => {
    switch (key) {
      case 'r':
        return void toggle()
      case 'f':
        moods.isFlaky = !moods.isFlaky
        return terminal.line(moods.isFlaky ? 'CRM is in its moods again.' : 'CRM answers well from now on.')
      case '+':
      case '=':
        return change(1)
      case '-':
        return change(-1)
      // Ctrl-C and Ctrl-D come as themselves while keys are read one by one.
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
        `retried ${count(retried)}  pending ${sum('pending')}  failed ${sum('failed')}  expired ${sum('expired')}${isFlaky ? '' : '  (CRM calm)'}`,
    )
  } catch {
    // It is stopping, or has ended: that is told elsewhere.
  }
}

async function close(parts: Parts, terminal: Terminal, moods: { isFlaky: boolean }): Promise<boolean> {
  // Nobody has to wait for a slow receiver to see the end.
  moods.isFlaky = false
  await parts.traffic.stop(FLUSH_MS)
  parts.receivers.crm.hurry()
  await untilSettled(parts)
  return await closeBooks(parts, terminal)
}

function lastWords(folder: string): string {
  const [words] = readFileSync(join(folder, 'service.log'), 'utf8').trim().split('\n').slice(-1)
  return words === undefined || words === '' ? '' : ` The last line of its log: ${words}`
}

function kept(folder: string, token: string): string {
  return `  The data is kept in ${folder}. To look at it again, with the token ${token}:\n  npm start -- --store sqlite:${join(folder, 'switchyard.db')}`
}
