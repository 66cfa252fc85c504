// What `npm start` runs while the repository holds the client half only: an endpoint for development that speaks the
// tracking API and prints what arrives. It stores nothing and delivers nothing; the service takes its place.
// Here: arguments, the start message, signals. HTTP and printing live in local-endpoint/.

import { isIP } from 'node:net'
import { parseArgs } from 'node:util'
import { createLocalEndpoint, type LocalEndpoint } from './local-endpoint/endpoint.ts'
import { jsonLine, messageLine, rejectionLine } from './local-endpoint/print.ts'

const WRITE_KEY = 'dev'

const HELP = `Usage: npm start -- [options]

A local endpoint for development: accepts what clients send to the tracking API and
prints it. It stores nothing and delivers nothing; the service will take its place.

  --host ADDRESS   where to listen              SWITCHYARD_HOST   default 127.0.0.1
  --port NUMBER    0 picks a free port          SWITCHYARD_PORT   default 8080
  --json           one line of JSON per message on stdout, all else on stderr
  --help           this text

A flag wins over its environment variable. NO_COLOR=1 switches colours off.
`

interface Settings {
  host: string
  port: number
  json: boolean
}

const settings = readSettings()
const colour = process.stdout.isTTY && process.stdout.hasColors()
let received = 0
let rejected = 0

// Whoever reads the output may leave first (`npm start | head`); that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

const endpoint = await start(settings)
say(startMessage(endpoint))

let stopping = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop())

async function start({ host, port, json }: Settings): Promise<LocalEndpoint> {
  try {
    return await createLocalEndpoint({
      host,
      port,
      onMessage(message, arrival) {
        received++
        process.stdout.write(`${json ? jsonLine(message) : messageLine(message, arrival, colour)}\n`)
      },
      onRejected(rejection) {
        rejected++
        say(rejectionLine(rejection, colour && !json))
      },
    })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const other = port === 65_535 ? 8080 : port + 1
    const reasons: Record<string, string> = {
      EADDRINUSE: `Port ${port} on ${host} is taken. Stop what listens there, or choose another: npm start -- --port ${other}`,
      EACCES: `Port ${port} on ${host} is not open to this user. Choose one above 1023: npm start -- --port 8080`,
      EADDRNOTAVAIL: `${host} is not an address of this machine.`,
      ENOTFOUND: `The host name ${host} is not known.`,
    }
    return fail(1, reasons[code ?? ''] ?? `Cannot listen on ${host}, port ${port}: ${message}`)
  }
}

async function stop(): Promise<void> {
  // A second signal is a person losing patience.
  if (stopping) process.exit(0)
  stopping = true
  await endpoint.close()
  say(`Stopped. ${received} received, ${rejected} rejected.`)
}

function readSettings(): Settings {
  let flags: { host?: string; port?: string; json?: boolean; help?: boolean }
  try {
    const options = {
      host: { type: 'string' },
      port: { type: 'string' },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    } as const
    flags = parseArgs({ options }).values
  } catch (error) {
    return fail(2, `${(error as Error).message}\n\n${HELP.trimEnd()}`)
  }
  if (flags.help) {
    process.stdout.write(HELP)
    process.exit(0)
  }
  // An empty variable counts as not set: that is how shells and compose files say "no value".
  const host = flags.host ?? (process.env['SWITCHYARD_HOST'] || '127.0.0.1')
  const port = flags.port ?? (process.env['SWITCHYARD_PORT'] || '8080')
  if (isIP(host) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host)) {
    fail(2, `The host must be a name or an address, without http:// and without a port; it is ${JSON.stringify(host)}.`)
  }
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    fail(2, `The port must be a whole number from 0 to 65535; it is ${JSON.stringify(port)}.`)
  }
  return { host, port: Number(port), json: flags.json === true }
}

function startMessage({ url }: LocalEndpoint): string {
  return `Switchyard local endpoint on ${url}: it prints messages, stores nothing and delivers nothing; the service will take its place.

Write key: ${WRITE_KEY} (any key that is not empty is accepted here)

From another terminal:

  curl ${url}/v1/track -u ${WRITE_KEY}: -d '{"userId":"user-1","event":"Order Completed","properties":{"total":42}}'

From Node.js:

  import { Analytics } from '@switchyard/node'
  const analytics = new Analytics({ writeKey: '${WRITE_KEY}', host: '${url}' })
  analytics.track({ userId: 'user-1', event: 'Order Completed', properties: { total: 42 } })
  console.log(await analytics.closeAndFlush())

Ctrl-C stops it. Messages follow.
`
}

/** To the person at the terminal: with --json, stdout belongs to the program behind the pipe. */
function say(text: string): void {
  if (settings.json) process.stderr.write(`${text}\n`)
  else process.stdout.write(`${text}\n`)
}

function fail(exitCode: number, text: string): never {
  process.stderr.write(`${text}\n`)
  process.exit(exitCode)
}
