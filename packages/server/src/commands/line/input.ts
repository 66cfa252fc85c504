// Reads the input of a command from files, stdin and the environment. A secret is never read from the command line, where every user of
// the machine can see it, and never quoted in a message.

import { readFileSync } from 'node:fs'
import type { JsonObject } from '@switchyard/protocol'
import { textProblem } from '../../api/json-problem.ts'
import { UsageProblem } from '../service/problem.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** `-` reads stdin, `@FILE` reads a file, and anything else is the text itself. */
export async function readText(what: string, given: string): Promise<string> {
  if (given === '-') return await readStdin()
  return given.startsWith('@') ? readNamedFile(what, given.slice(1)) : given
}

/** The ids in arguments, which may stand in stdin or a file, separated by white space. Each once. */
export async function readIds(what: string, given: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const argument of given) ids.push(...(await readText(what, argument)).split(/\s+/).filter((id) => id !== ''))
  return [...new Set(ids)]
}

export async function readJsonObject(what: string, given: string): Promise<JsonObject> {
  const text = await readText(what, given)
  let value: JsonObject | null
  try {
    value = JSON.parse(text) as JsonObject | null
  } catch (cause) {
    throw new UsageProblem(textProblem(what, text), { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new UsageProblem(`${what} must be a JSON object.`)
  return value
}

/** Reads a file with an object in JSON or YAML, or stdin if the path is `-`. */
export async function readObjectFile(what: string, path: string): Promise<JsonObject> {
  const text = await readFileText(what, path)
  const { parse } = await import('yaml')
  let value: unknown
  try {
    // JSON is also YAML. Aliases are limited, so that a small file cannot expand to a large value.
    value = parse(text, { maxAliasCount: 100 })
  } catch (cause) {
    throw new UsageProblem(`${what}: ${path} is not valid JSON or YAML: ${(cause as Error).message.split('\n')[0]}`, {
      cause,
    })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageProblem(`${what}: ${path} must contain an object.`)
  return value
}

/** Returns the value of an environment variable for `env:NAME`, and any other text as it is. */
export function readEnvironment(what: string, given: string, env: Environment): string {
  const [, variable] = /^env:(\w+)$/.exec(given) ?? []
  const read = variable === undefined ? given : env[variable]
  if (read === undefined) throw new UsageProblem(`${what}: the environment variable ${variable} is not set.`)
  return read
}

/** Reads a secret from `-` (stdin), `@FILE` or `env:NAME`. */
export async function readSecret(what: string, given: string, env: Environment): Promise<string> {
  let secret: string | undefined
  if (given.startsWith('env:')) {
    secret = env[given.slice('env:'.length)]
    if (secret === undefined || secret === '')
      throw new UsageProblem(`${what}: the environment variable ${given.slice('env:'.length)} is not set.`)
  } else if (given === '-' || given.startsWith('@')) secret = (await readText(what, given)).replace(/\r?\n$/, '')
  else
    throw new UsageProblem(
      `${what} must say where to read the secret: - for stdin, @FILE or env:NAME. Do not give the secret itself, because other users of this machine can see the command line.`,
    )
  if (secret === '') throw new UsageProblem(`${what} is empty.`)
  return secret
}

/** Reads a file, or stdin if the path is `-`. */
export async function readFileText(what: string, path: string): Promise<string> {
  return path === '-' ? await readStdin() : readNamedFile(what, path)
}

export function readNamedFile(what: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const why =
      code === 'ENOENT' ? 'no such file' : code === 'EACCES' ? 'permission denied' : code === 'EISDIR' ? 'it is a directory' : String(code)
    throw new UsageProblem(`${what}: cannot read ${path}: ${why}.`, { cause })
  }
}

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
