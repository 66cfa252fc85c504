// The flags that every command takes, before its name or after.

import { type Config, SETTINGS } from '../../config.ts'
import { CommandProblem, EXIT, type Flag } from './command.ts'

export const GLOBAL_FLAGS = {
  json: { placeholder: null, sentence: 'Writes JSON to stdout, and nothing else.' },
  url: {
    placeholder: 'URL',
    sentence: 'The service to speak to.',
    usual: 'http://127.0.0.1:8080, or what SWITCHYARD_HOST and SWITCHYARD_PORT say',
    variable: 'SWITCHYARD_URL',
  },
  token: {
    placeholder: 'TOKEN',
    sentence: 'A control token. Others on this machine can read the flags of a process: rather use the variable.',
    usual: 'SWITCHYARD_ADMIN_TOKEN',
    variable: 'SWITCHYARD_TOKEN',
  },
  'no-color': { placeholder: null, sentence: 'No colours, even on a terminal.', variable: 'NO_COLOR' },
  help: { placeholder: null, sentence: 'What the command does and takes. -h is the same.' },
  version: { placeholder: null, sentence: 'The version.' },
} as const satisfies Record<string, Flag>

type Environment = Readonly<Record<string, string | undefined>>

/** Where the service is, without a slash at the end. */
export function serviceUrl(flag: string | undefined, env: Environment): string {
  const named = flag ?? (env['SWITCHYARD_URL'] || undefined)
  if (named !== undefined) {
    const url = URL.canParse(named) ? new URL(named) : undefined
    if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '') {
      const what = flag === undefined ? 'SWITCHYARD_URL' : '--url'
      throw new CommandProblem(`${what} must be the address of a service, such as http://127.0.0.1:8080.`, EXIT.usage)
    }
    return url.href.replace(/\/+$/, '')
  }
  const host = settingOr('host', env)
  // What is listened on is not always what can be dialled.
  const dialled = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const port = settingOr('port', env) || SETTINGS.port.fallback
  return `http://${dialled.includes(':') ? `[${dialled}]` : dialled}:${port}`
}

export function controlToken(flag: string | undefined, env: Environment): string | null {
  const token = flag ?? (env['SWITCHYARD_TOKEN'] || env['SWITCHYARD_ADMIN_TOKEN'] || undefined)
  if (token === undefined) return null
  if (!/^[\x21-\x7e]{1,1000}$/.test(token))
    throw new CommandProblem('The token must be visible ASCII characters without spaces, at most 1000.', EXIT.usage)
  return token
}

function settingOr<K extends 'host' | 'port'>(name: K, env: Environment): Config[K] {
  const setting = SETTINGS[name]
  const text = env[setting.variable]
  if (text === undefined || text === '') return setting.fallback as Config[K]
  const parsed = setting.parse(text)
  if ('expected' in parsed) throw new CommandProblem(`${setting.variable} must be ${parsed.expected}.`, EXIT.usage)
  if ('problem' in parsed) throw new CommandProblem(`${setting.variable}: ${parsed.problem}`, EXIT.usage)
  return parsed.value as Config[K]
}
