// The process: settings, the start message, signals, exit codes. Everything else is app.ts's. Messages for a person go to
// stdout, the log to stderr.

import { readFileSync } from 'node:fs'
import { type App, createApp, StartProblem, StoreProblem } from './app.ts'
import { type Config, helpText, readConfig } from './config.ts'
import { createLog } from './log.ts'

const result = readConfig(process.env, process.argv.slice(2))
switch (result.kind) {
  case 'help':
    process.stdout.write(helpText())
    break
  case 'version':
    process.stdout.write(
      `${(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version}\n`,
    )
    break
  case 'problems':
    for (const { message } of result.problems) process.stderr.write(`${message}\n`)
    process.stderr.write('Run with --help for all settings.\n')
    process.exitCode = 2
    break
  case 'config':
    await serve(result.config, result.warnings)
}

async function serve(config: Config, warnings: readonly string[]): Promise<void> {
  const log = createLog(config.log)
  for (const warning of warnings) log.warn(warning)
  const starting = createApp(config, log)
  // From the first moment: a signal during the start stops what has been started, in order.
  let stopping = false
  const stop = (signal: NodeJS.Signals): void => {
    // A second signal is a person losing patience.
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'stopping')
    starting
      .then((app) => app.close())
      .then(
        () => {
          log.info('stopped')
          log.flush()
          process.exit(0)
        },
        (err: unknown) => {
          log.error({ err }, 'stopping failed')
          log.flush()
          process.exit(1)
        },
      )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  let app: App
  try {
    app = await starting
  } catch (error) {
    if (!(error instanceof StartProblem || error instanceof StoreProblem)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
  // Whoever reads the output may leave first (`npm start | head`); that is no reason to stop serving.
  process.stdout.on('error', () => {})
  process.stdout.write(startMessage(app, config))
  log.info({ url: app.url }, 'listening')
}

function startMessage({ url, firstSource, generatedToken }: App, { store }: Config): string {
  const writeKey = firstSource?.writeKeys[0]
  const key = writeKey ?? 'WRITE_KEY'
  const webhook = JSON.stringify({ name: 'my webhook', sourceIds: [firstSource?.id ?? 'SOURCE_ID'], urls: ['http://127.0.0.1:9000/'] })
  const token = generatedToken ?? 'TOKEN'
  const rows: [string, string][] = [
    [
      'Write key',
      writeKey === undefined ? 'none: every source was deleted' : `${writeKey}   (source ${firstSource?.name}, ${firstSource?.id})`,
    ],
    ['Control API', `${url}/api`],
    [
      'Admin token',
      generatedToken === null ? 'as given, or as printed at the first start' : `${generatedToken}   (shown this once: keep it)`,
    ],
    ['Data', store.kind === 'sqlite' ? store.path : 'PostgreSQL'],
  ]
  return `Switchyard listens on ${url}

${rows.map(([name, value]) => `  ${name.padEnd(13)}${value}`).join('\n')}

Send a message:

  curl ${url}/v1/track -u ${key}: -d '{"userId":"user-1","event":"Order Completed","properties":{"total":42}}'

Have it delivered: start a receiver that prints what arrives (npm run example examples/receiver.ts), then

  curl ${url}/api/destinations -H 'Authorization: Bearer ${token}' -d '${webhook}'

`
}
