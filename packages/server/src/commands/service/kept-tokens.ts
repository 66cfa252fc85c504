// The tokens that `switchyard login` keeps, one per address of a service, in the configuration folder of the user. Only the user can read the file. A token
// is given only to the service that issued it: the address must be the same, character by character.

import { randomBytes } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { CommandProblem, UsageProblem } from './problem.ts'

export interface KeptToken {
  id: string
  token: string
}

type Environment = Readonly<Record<string, string | undefined>>

const PRIVATE_FILE = 0o600
const PRIVATE_FOLDER = 0o700
const MAX_BYTES = 1_000_000

/** XDG_CONFIG_HOME counts everywhere, because who sets it on macOS wants the file there. */
export function credentialsPath(env: Environment, platform: NodeJS.Platform = process.platform): string {
  const home = env['HOME'] || homedir()
  const xdg = env['XDG_CONFIG_HOME']
  // The specification says that relative paths are invalid and must be ignored.
  if (xdg !== undefined && isAbsolute(xdg)) return join(xdg, 'switchyard', 'credentials.json')
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'switchyard', 'credentials.json')
  if (platform === 'win32') return join(env['APPDATA'] || join(home, 'AppData', 'Roaming'), 'switchyard', 'credentials.json')
  return join(home, '.config', 'switchyard', 'credentials.json')
}

/** The token for exactly this address. Undefined if there is none. */
export function keptToken(env: Environment, url: string): KeptToken | undefined {
  return readTokens(credentialsPath(env)).get(url)
}

/** Replaces the token for this address; null removes it. */
export function keepToken(env: Environment, url: string, token: KeptToken | null): void {
  const path = credentialsPath(env)
  const tokens = readTokens(path)
  if (token === null) tokens.delete(url)
  else tokens.set(url, token)
  const fresh = `${path}.${randomBytes(6).toString('hex')}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_FOLDER })
    if (tokens.size === 0) return rmSync(path, { force: true })
    // A new file, because an existing one may be open in a program of another user.
    writeFileSync(fresh, `${JSON.stringify({ tokens: Object.fromEntries(tokens) }, null, 2)}\n`, { mode: PRIVATE_FILE, flag: 'wx' })
    // The mode of a new file is limited by the umask, and never widened.
    chmodSync(fresh, PRIVATE_FILE)
    renameSync(fresh, path)
  } catch (error) {
    rmSync(fresh, { force: true })
    throw new CommandProblem(`Cannot write ${path}: ${(error as Error).message}.`, undefined, { cause: error })
  }
}

function readTokens(path: string): Map<string, KeptToken> {
  let text: string
  try {
    const { mode, size } = lstatSync(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw new UsageProblem(`Other users of this machine can read ${path}, which contains tokens. Run: chmod 600 '${path}'`)
    if (size > MAX_BYTES) throw invalid(path)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof CommandProblem) throw error
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return new Map()
    throw new CommandProblem(`Cannot read ${path}: ${message}.`, undefined, { cause: error })
  }
  const found = new Map<string, KeptToken>()
  for (const [url, kept] of Object.entries(tokensOf(path, text))) {
    const { id, token } = (kept ?? {}) as Partial<Record<keyof KeptToken, unknown>>
    if (typeof id === 'string' && typeof token === 'string' && /^[\x21-\x7e]{1,1000}$/.test(token)) found.set(url, { id, token })
  }
  return found
}

function tokensOf(path: string, text: string): object {
  try {
    const { tokens } = JSON.parse(text) as { tokens?: unknown }
    if (typeof tokens === 'object' && tokens !== null && !Array.isArray(tokens)) return tokens
  } catch {
    // The same sentence as for JSON of another form.
  }
  throw invalid(path)
}

function invalid(path: string): UsageProblem {
  return new UsageProblem(`${path} is not a file of \`switchyard login\`. Remove it, and log in again.`)
}
