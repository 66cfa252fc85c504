// The flags that every command accepts, before or after its name.

import { type Config, SETTINGS } from '../../config.ts'
import type { GivenToken } from '../service/api.ts'
import { keptToken } from '../service/kept-tokens.ts'
import { type Flag, UsageProblem } from './command.ts'

export const GLOBAL_FLAGS = {
  json: { placeholder: null, description: 'Write the result to stdout as JSON.' },
  url: {
    placeholder: 'URL',
    description: 'The URL of the service.',
    defaultText: 'http://127.0.0.1:8080, or the host and port in SWITCHYARD_HOST and SWITCHYARD_PORT',
    variable: 'SWITCHYARD_URL',
  },
  token: {
    placeholder: 'TOKEN',
    description: 'A control token. Other users of this machine can see the flags of a process, so prefer the environment variable.',
    defaultText: 'the token of `switchyard login`, or else the value of SWITCHYARD_ADMIN_TOKEN',
    variable: 'SWITCHYARD_TOKEN',
  },
  'no-color': { placeholder: null, description: 'Do not use colours, even on a terminal.', variable: 'NO_COLOR' },
  help: { placeholder: null, description: 'Show help for a command. Short form: -h.' },
  version: { placeholder: null, description: 'Show the version.' },
} as const satisfies Record<string, Flag>

type Environment = Readonly<Record<string, string | undefined>>

/** The URL of the service, without a trailing slash. */
export function serviceUrl(flag: string | undefined, env: Environment): string {
  const named = flag ?? (env['SWITCHYARD_URL'] || undefined)
  if (named !== undefined) {
    const url = URL.canParse(named) ? new URL(named) : undefined
    if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '') {
      const what = flag === undefined ? 'SWITCHYARD_URL' : '--url'
      throw new UsageProblem(
        `${what} must be the http:// or https:// URL of a service, without credentials, query or fragment, such as http://127.0.0.1:8080.`,
      )
    }
    return url.href.replace(/\/+$/, '')
  }
  const host = settingOr('host', env)
  // A wildcard address can be listened on but not connected to.
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const port = settingOr('port', env) || SETTINGS.port.fallback
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

/** `url`: the address of the service, because a token of `switchyard login` is only for the service that issued it. */
export function controlToken(flag: string | undefined, env: Environment, url: string): GivenToken {
  const given = tokenOf(flag, env, url)
  if (given.token !== null && !/^[\x21-\x7e]{1,1000}$/.test(given.token))
    throw new UsageProblem('The control token must consist of 1 to 1000 visible ASCII characters without spaces.')
  return given
}

function tokenOf(flag: string | undefined, env: Environment, url: string): GivenToken {
  if (flag !== undefined) return { token: flag, tokenFrom: '--token' }
  if (env['SWITCHYARD_TOKEN']) return { token: env['SWITCHYARD_TOKEN'], tokenFrom: 'SWITCHYARD_TOKEN' }
  // Before the admin token, which is in the environment because the service needs it there: a person who has logged in wants to be that person.
  const kept = keptToken(env, url)
  if (kept !== undefined) return { token: kept.token, tokenFrom: 'switchyard login' }
  if (env['SWITCHYARD_ADMIN_TOKEN']) return { token: env['SWITCHYARD_ADMIN_TOKEN'], tokenFrom: 'SWITCHYARD_ADMIN_TOKEN' }
  return { token: null, tokenFrom: null }
}

function settingOr<K extends 'host' | 'port'>(name: K, env: Environment): Config[K] {
  const setting = SETTINGS[name]
  const text = env[setting.variable]
  if (text === undefined || text === '') return setting.fallback as Config[K]
  const parsed = setting.parse(text)
  if ('expected' in parsed) throw new UsageProblem(`${setting.variable} must be ${parsed.expected}.`)
  if ('problem' in parsed) throw new UsageProblem(`${setting.variable}: ${parsed.problem}`)
  return parsed.value as Config[K]
}
