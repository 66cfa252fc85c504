// `switchyard serve`: reads the settings, starts the service (app.ts), prints the start message and handles signals. The start message
// goes to stdout, the log to stderr.

import type { App } from '../app.ts'
import { type Config, flagOf, readConfig, SETTINGS, type Setting } from '../config.ts'
import { commandForm, inForm } from '../installation/command-form.ts'
import type { Supervised } from '../installation/processes/supervised.ts'
import { harmless } from '../logging/terminal-text.ts'
import { type Command, EXIT, type ExitCode, type Flag } from './line/command.ts'

/** The process exits after this time, whatever the stop is waiting for. By itself a stop takes less (app.ts), and the documentation promises ten seconds. */
const STOP_MS = 9_200
const SENT_AGAIN = 'messages whose outcome was not recorded are sent again after the next start'

const FLAGS = settingFlags()

export const serve: Command = {
  name: 'serve',
  summary: 'Run the service: tracking API, control API, dashboard and deliveries',
  details:
    'Each setting can be given as a flag or as an environment variable; the flag takes precedence. Other users of this machine can see the flags of a process, ' +
    'so pass secrets in environment variables.\n\n' +
    'On SIGTERM or Ctrl-C the service stops accepting requests, finishes or releases the deliveries in flight within 10 seconds, and exits with code 0. If something cannot be finished in this time, for example because the database does not respond, the exit code is 6, and the log lists what was not finished.',
  examples: ['switchyard serve', 'switchyard serve --port 9000 --store sqlite:/var/lib/switchyard/switchyard.db'],
  flags: FLAGS,
  isService: true,
  otherProblems(flags, env) {
    const result = readConfig(
      env,
      settingsIn((name) => flags.get(name)),
    )
    return result.kind === 'problems' ? result.problems.map(({ message }) => message) : []
  },
  async run({ env, json, flags, has }) {
    const result = readConfig(
      env,
      settingsIn((name) => (has(name) ? flags(name) : undefined)),
    )
    if (result.kind === 'problems') {
      for (const { message } of result.problems) tell(message)
      tell('Run `switchyard serve --help` for a list of all settings.')
      return EXIT.usage
    }
    const { config, warnings } = result
    const [{ connectToSupervisor }, { processCount }] = await Promise.all([
      import('../installation/processes/supervised.ts'),
      import('../installation/processes/process-count.ts'),
    ])
    const supervised = connectToSupervisor()
    // The supervisor has logged the warnings.
    if (supervised !== null) return await run({ ...config, port: supervised.port }, [], json, supervised)
    const processes = processCount(config)
    return processes === 1 ? await run(config, warnings, json, null) : await runSeveral(processes, config, warnings)
  },
}

/** The settings that were given as flags. A switch without a value is on. */
function settingsIn(given: (name: string) => readonly string[] | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.keys(FLAGS).flatMap((name) => {
      const values = given(name)
      return values === undefined ? [] : [[name, values[0] ?? 'true']]
    }),
  )
}

function tell(text: string): void {
  process.stderr.write(`${inForm(text, commandForm({ cwd: process.cwd() }))}\n`)
}

function settingFlags(): Record<string, Flag> {
  const settings: Setting<unknown>[] = Object.values(SETTINGS)
  return Object.fromEntries(
    settings.map((setting) => {
      const { placeholder, description, defaultText, variable } = setting
      return [
        flagOf(setting).slice(2),
        { placeholder, description, defaultText, variable, ...(placeholder === null ? { optionalValue: true } : {}) },
      ]
    }),
  )
}

/** Each process runs this command again, with the same arguments, and detects that it has a supervisor. */
async function runSeveral(processes: number, { host, port, log: level }: Config, warnings: readonly string[]): Promise<ExitCode> {
  const [{ supervise }, { createLog }, { checkPort }] = await Promise.all([
    import('../installation/processes/supervisor.ts'),
    import('../logging/log.ts'),
    import('../installation/listening.ts'),
  ])
  try {
    await checkPort({ host, port })
  } catch (error) {
    tell((error as Error).message)
    return EXIT.failed
  }
  const log = createLog(level, { fields: { process: 0 } })
  for (const warning of warnings) log.warn(warning)
  const end = await supervise({ processes, port, log, forcedCode: EXIT.forced })
  log.flush()
  return { stopped: EXIT.ok, forced: EXIT.forced, failed: EXIT.failed }[end]
}

async function run(config: Config, warnings: readonly string[], json: boolean, supervised: Supervised | null): Promise<ExitCode> {
  const [{ createApp, StartProblem, StoreProblem }, { createLog }, { releaseMemoryWhenIdle }] = await Promise.all([
    import('../app.ts'),
    import('../logging/log.ts'),
    import('../timing/idle-memory.ts'),
  ])
  const log = createLog(config.log, { fields: supervised && { process: supervised.index } })
  for (const warning of warnings) log.warn(warning)
  const giveUp = new AbortController()
  const starting = createApp(config, log, { stopping: giveUp.signal, supervised: supervised ?? undefined })
  // Registered before the start completes, so that a signal during the start stops what has already been started, in order.
  const stopped = new Promise<ExitCode>((resolve) => {
    let stopping = false
    const stop = (signal: NodeJS.Signals | 'the supervisor ended'): void => {
      // A second signal exits at once. A supervised process ignores it: its supervisor decides when to kill it, and the signal may come from elsewhere.
      if (stopping && supervised === null) process.exit(EXIT.failed)
      if (stopping) return
      stopping = true
      log.info({ signal }, 'stopping')
      giveUp.abort()
      const force = (unfinished: readonly string[]): void => {
        log.error({ unfinished }, `the stop was forced before everything was finished: ${SENT_AGAIN}`)
        log.flush()
        resolve(EXIT.forced)
      }
      let step = 'the start of the service'
      setTimeout(() => force([step]), STOP_MS).unref()
      starting
        .then((app) => {
          step = 'the stop of the service'
          return app.close()
        })
        .then(
          (unfinished) => {
            if (unfinished.length > 0) return force(unfinished)
            log.info('stopped')
            log.flush()
            resolve(EXIT.ok)
          },
          (err: unknown) => {
            // The service was still waiting for its store, so there is nothing to stop.
            if (err instanceof StartProblem) return resolve(EXIT.ok)
            log.error({ err }, 'stopping failed')
            log.flush()
            resolve(EXIT.failed)
          },
        )
    }
    process.on('SIGTERM', stop)
    // A terminal sends Ctrl-C to all processes. The supervisor passes it on as SIGTERM.
    process.on('SIGINT', supervised === null ? stop : () => {})
    supervised?.onOrphaned(() => stop('the supervisor ended'))
  })
  let app: App
  try {
    // A start that never completes must not keep the process alive when it is told to stop.
    const first = await Promise.race([starting, stopped])
    if (typeof first === 'number') return first
    app = first
  } catch (error) {
    if (!(error instanceof StartProblem || error instanceof StoreProblem)) throw error
    if (giveUp.signal.aborted) return await stopped
    tell(error.message)
    return EXIT.failed
  }
  if (supervised?.announces !== false)
    process.stdout.write(json ? `${JSON.stringify(startFacts(app, config))}\n` : startMessage(app, config))
  log.info({ url: app.url }, 'listening')
  releaseMemoryWhenIdle()
  return await stopped
}

function startFacts({ url, firstSource, generatedToken, storePlace }: App, { store }: Config): object {
  return {
    url,
    source: firstSource === undefined ? null : { id: firstSource.id, name: firstSource.name, writeKeys: firstSource.writeKeys },
    // Shown only once, as in the start message.
    ...(generatedToken === null ? {} : { adminToken: generatedToken }),
    store: store.kind === 'sqlite' ? `sqlite:${store.path}` : `postgres://${storePlace}`,
  }
}

function startMessage({ url, firstSource, generatedToken, hasDashboard, storePlace }: App, { store }: Config): string {
  const writeKey = firstSource?.writeKeys[0]
  const key = writeKey ?? 'WRITE_KEY'
  const webhook = JSON.stringify({ name: 'my webhook', sourceIds: [firstSource?.id ?? 'SOURCE_ID'], urls: ['http://127.0.0.1:9000/'] })
  const token = generatedToken ?? 'TOKEN'
  const command = commandForm({ url })
  // The token is printed below anyway, so the link can log in with it.
  const dashboard: [string, string][] = hasDashboard
    ? [['Dashboard', generatedToken === null ? `${url}/` : `${url}/#token=${generatedToken}`]]
    : []
  const rows: [string, string][] = [
    [
      'Write key',
      writeKey === undefined
        ? `none (there is no source; create one with: ${command} sources create NAME)`
        : `${writeKey}   (source ${harmless(firstSource?.name ?? '')}, ${firstSource?.id})`,
    ],
    ...dashboard,
    ['Control API', `${url}/api`],
    ['Docs', `${url}/docs`],
    [
      'Admin token',
      generatedToken === null
        ? 'the one in SWITCHYARD_ADMIN_TOKEN, or the one printed at the first start'
        : `${generatedToken}   (shown only once: save it now)`,
    ],
    ['Data', store.kind === 'sqlite' ? store.path : `PostgreSQL at ${storePlace}`],
  ]
  return `Switchyard listens on ${url}

${rows.map(([name, value]) => `  ${name.padEnd(13)}${value}`).join('\n')}

Send a message:

  curl ${url}/v1/track -u ${key}: -d '{"userId":"user-1","event":"Order Completed","properties":{"total":42}}'

To have messages delivered, start a receiver that prints the messages it gets (${command} listen), and then create a destination:

  curl ${url}/api/destinations -H 'Authorization: Bearer ${token}' -d '${webhook}'

To do more from the command line, set SWITCHYARD_TOKEN to the admin token and run one of these:

  ${command} tail
  ${command} --help

`
}
