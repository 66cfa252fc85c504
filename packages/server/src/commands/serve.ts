// The service as a command: settings, the start message, signals. Everything else is app.ts's. Messages for a person go to
// stdout, the log to stderr.

import type { App } from '../app.ts'
import { type Config, flagOf, readConfig, SETTINGS, type Setting } from '../config.ts'
import { harmless } from '../logging/terminal-text.ts'
import { type Command, EXIT, type ExitCode, type Flag } from './line/command.ts'

/** A stop takes no longer than this, whatever it waits for. The documentation promises ten seconds, and the process needs a moment to exit. */
const STOP_MS = 9_000

export const serve: Command = {
  name: 'serve',
  summary: 'Runs the service: the tracking API, the control API, deliveries',
  details:
    'Each setting is a flag or an environment variable; the flag wins. Others on this machine can read the flags of a process, ' +
    'so give secrets in the environment.\n\n' +
    'SIGTERM or Ctrl-C: it stops accepting, finishes or hands back what is in flight within 10 seconds, and exits with 0.',
  examples: ['switchyard serve', 'switchyard serve --port 9000 --store sqlite:/var/lib/switchyard/switchyard.db'],
  flags: settingFlags(),
  isService: true,
  async run({ arguments: argv, env }) {
    const json = argv.includes('--json')
    const result = readConfig(
      env,
      argv.filter((word) => word !== '--json' && word !== '--no-color'),
    )
    if (result.kind === 'problems') {
      for (const { message } of result.problems) process.stderr.write(`${message}\n`)
      process.stderr.write('switchyard serve --help lists all settings.\n')
      return EXIT.usage
    }
    // Help and version were answered before.
    if (result.kind !== 'config') return EXIT.ok
    return await run(result.config, result.warnings, json)
  },
}

function settingFlags(): Record<string, Flag> {
  const settings: Setting<unknown>[] = Object.values(SETTINGS)
  return Object.fromEntries(
    settings.map((setting) => {
      const { placeholder, sentence, usual, variable } = setting
      return [flagOf(setting).slice(2), { placeholder, sentence, usual, variable }]
    }),
  )
}

async function run(config: Config, warnings: readonly string[], json: boolean): Promise<ExitCode> {
  const [{ createApp, StartProblem, StoreProblem }, { createLog }] = await Promise.all([import('../app.ts'), import('../logging/log.ts')])
  const log = createLog(config.log)
  for (const warning of warnings) log.warn(warning)
  const giveUp = new AbortController()
  const starting = createApp(config, log, { stopping: giveUp.signal })
  // From the first moment: a signal during the start stops what has been started, in order.
  const stopped = new Promise<ExitCode>((resolve) => {
    let stopping = false
    const stop = (signal: NodeJS.Signals): void => {
      // A second signal is a person losing patience.
      if (stopping) process.exit(EXIT.failed)
      stopping = true
      log.info({ signal }, 'stopping')
      giveUp.abort()
      setTimeout(() => {
        log.warn(
          `stopping took longer than ${STOP_MS / 1_000} s, probably because the store does not answer: exiting now, and what was in flight will be sent again`,
        )
        log.flush()
        resolve(EXIT.ok)
      }, STOP_MS).unref()
      starting
        .then((app) => app.close())
        .then(
          () => {
            log.info('stopped')
            log.flush()
            resolve(EXIT.ok)
          },
          (err: unknown) => {
            // It had not been started, and waited for its store.
            if (err instanceof StartProblem) return resolve(EXIT.ok)
            log.error({ err }, 'stopping failed')
            log.flush()
            resolve(EXIT.failed)
          },
        )
    }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  })
  let app: App
  try {
    app = await starting
  } catch (error) {
    if (!(error instanceof StartProblem || error instanceof StoreProblem)) throw error
    if (giveUp.signal.aborted) return await stopped
    process.stderr.write(`${error.message}\n`)
    return EXIT.failed
  }
  process.stdout.write(json ? `${JSON.stringify(startFacts(app, config))}\n` : startMessage(app, config))
  log.info({ url: app.url }, 'listening')
  return await stopped
}

function startFacts({ url, firstSource, generatedToken, storePlace }: App, { store }: Config): object {
  return {
    url,
    source: firstSource === undefined ? null : { id: firstSource.id, name: firstSource.name, writeKeys: firstSource.writeKeys },
    // Shown this once, as in the message for people.
    ...(generatedToken === null ? {} : { adminToken: generatedToken }),
    store: store.kind === 'sqlite' ? `sqlite:${store.path}` : `postgres://${storePlace}`,
  }
}

function startMessage({ url, firstSource, generatedToken, hasDashboard, storePlace }: App, { store }: Config): string {
  const writeKey = firstSource?.writeKeys[0]
  const key = writeKey ?? 'WRITE_KEY'
  const webhook = JSON.stringify({ name: 'my webhook', sourceIds: [firstSource?.id ?? 'SOURCE_ID'], urls: ['http://127.0.0.1:9000/'] })
  const token = generatedToken ?? 'TOKEN'
  // With a token that is shown here anyway, the link logs in.
  const dashboard: [string, string][] = hasDashboard
    ? [['Dashboard', generatedToken === null ? `${url}/` : `${url}/#token=${generatedToken}`]]
    : []
  const rows: [string, string][] = [
    [
      'Write key',
      writeKey === undefined
        ? 'none: every source was deleted'
        : `${writeKey}   (source ${harmless(firstSource?.name ?? '')}, ${firstSource?.id})`,
    ],
    ...dashboard,
    ['Control API', `${url}/api`],
    ['Docs', `${url}/docs`],
    [
      'Admin token',
      generatedToken === null ? 'as given, or as printed at the first start' : `${generatedToken}   (shown this once: keep it)`,
    ],
    ['Data', store.kind === 'sqlite' ? store.path : `PostgreSQL at ${storePlace}`],
  ]
  return `Switchyard listens on ${url}

${rows.map(([name, value]) => `  ${name.padEnd(13)}${value}`).join('\n')}

Send a message:

  curl ${url}/v1/track -u ${key}: -d '{"userId":"user-1","event":"Order Completed","properties":{"total":42}}'

Have it delivered: start a receiver that prints what arrives (npx switchyard listen), then

  curl ${url}/api/destinations -H 'Authorization: Bearer ${token}' -d '${webhook}'

Look around, with the admin token in SWITCHYARD_TOKEN: npx switchyard tail, npx switchyard --help

`
}
