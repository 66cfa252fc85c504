// What can be asked of the demo on its command line.

import { parseArgs } from 'node:util'
import { durationMs } from '../../packages/server/src/commands/line/times.ts'

export interface Options {
  /** Messages a second. */
  rate: number
  /** Null: until somebody ends it. */
  durationMs: number | null
  /** 0: a free one. */
  port: number
  /** Null: a temporary folder, removed in the end. */
  keep: string | null
  open: boolean
}

export const MAX_RATE = 500

export const HELP = `npm run demo -- [options]

Starts Switchyard on a temporary file, three receivers (one good, one flaky, one dead), and an
imaginary shop that sends traffic through @switchyard/node. Nothing leaves this machine, and
nothing is left behind.

  --rate N          messages a second, 1 to ${MAX_RATE} (default 20)
  --duration TIME   ends by itself after 90s, 5m, 1h … (default: Ctrl-C ends it)
  --port N          where the service listens (default: a free port), on 127.0.0.1
  --keep DIR        keeps the data in DIR, a folder that is empty or not there yet
  --no-open         does not open a browser
  --help            this

While it runs: r wakes or stops the dead receiver, f turns the flaky one's moods on or off,
+ and - change the rate, q or Ctrl-C ends it.
`

export type Parsed = { options: Options } | { problem: string } | { help: true }

export function parseOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): Parsed {
  // npm keeps what stands before a -- for itself, and says so only sometimes.
  const swallowed = ['rate', 'duration', 'port', 'keep'].find((name) => env[`npm_config_${name}`] !== undefined)
  if (swallowed !== undefined)
    return { problem: `npm took --${swallowed} for its own: put -- before it, as in npm run demo -- --${swallowed} …` }
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
  if (duration === undefined || duration === 0) return { problem: '--duration must be a time, such as 90s, 5m or 1h' }
  const port = Number(values.port ?? 0)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return { problem: '--port must be a number from 0 to 65535' }
  if (values.keep === '') return { problem: '--keep needs a folder' }
  return { options: { rate, durationMs: duration, port, keep: values.keep ?? null, open: values['no-open'] !== true } }
}
