// The command-line options of the demo.

import { parseArgs } from 'node:util'
import { durationMs } from '../../packages/server/src/commands/line/times.ts'

export interface Options {
  /** Messages per second. */
  rate: number
  /** Null if the demo runs until it is interrupted. */
  durationMs: number | null
  /** 0 chooses a free port. */
  port: number
  /** The folder for the data; null for a temporary folder that is deleted at the end. */
  keep: string | null
  open: boolean
}

export const MAX_RATE = 500

export const HELP = `npm run demo -- [options]

Starts Switchyard on a temporary file, three receivers (one healthy, one flaky, one dead), and an
imaginary shop that sends messages with @switchyard/node. No data leaves this machine, and all
data is deleted at the end.

  --rate N          Messages per second, from 1 to ${MAX_RATE} (default: 20)
  --duration TIME   Stop after this time, for example 90s, 5m or 1h (default: run until Ctrl-C)
  --port N          The port on 127.0.0.1 that the service listens on (default: a free port)
  --keep DIR        Keep the data in DIR, which must be empty or not exist yet
  --no-open         Do not open a browser
  --help            Show this help

While the demo runs, press r to start or stop the dead receiver, f to turn the failures of the
flaky receiver off or on, v to let the mobile app send wrong orders, s to close or open the shop,
+ or - to change the rate, and q or Ctrl-C to stop.
`

export type Parsed = { options: Options } | { problem: string } | { help: true }

export function parseOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Parsed {
  // npm consumes options that come before `--`, and does not always warn about it.
  const consumedByNpm = ['rate', 'duration', 'port', 'keep'].find((name) => env[`npm_config_${name}`] !== undefined)
  if (consumedByNpm !== undefined)
    return { problem: `npm consumed the option --${consumedByNpm}. Put -- before it, as in: npm run demo -- --${consumedByNpm} …` }
  let values: { rate?: string; duration?: string; port?: string; keep?: string; 'no-open'?: boolean; help?: boolean }
  try {
    values = parseArgs({
      args: [...argv],
      options: {
        rate: { type: 'string' },
        duration: { type: 'string' },
        port: { type: 'string' },
        keep: { type: 'string' },
        'no-open': { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values
  } catch (error) {
    return { problem: (error as Error).message.split('. ', 1)[0] as string }
  }
  if (values.help) return { help: true }
  const rate = Number(values.rate ?? 20)
  if (!(rate >= 1 && rate <= MAX_RATE)) return { problem: `--rate must be a number from 1 to ${MAX_RATE}` }
  const duration = values.duration === undefined ? null : durationMs(values.duration)
  if (duration === undefined || duration === 0) return { problem: '--duration must be a duration greater than 0, such as 90s, 5m or 1h' }
  const port = Number(values.port ?? 0)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return { problem: '--port must be a number from 0 to 65535' }
  if (values.keep === '') return { problem: '--keep must name a folder' }
  return { options: { rate, durationMs: duration, port, keep: values.keep ?? null, open: values['no-open'] !== true } }
}
