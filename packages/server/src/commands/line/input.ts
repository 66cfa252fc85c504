// What a command reads beside its arguments: files, stdin, the environment. A secret is never taken from the command line,
// where every user of the machine can read it, and never quoted.

import { readFileSync } from 'node:fs'
import type { JsonObject } from '@switchyard/protocol'
import { CommandProblem, EXIT } from './problem.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** `-` is stdin, `@FILE` a file, anything else itself. */
export async function readText(what: string, given: string): Promise<string> {
  if (given === '-') return await readStdin()
  return given.startsWith('@') ? readNamedFile(what, given.slice(1)) : given
}

export async function readJsonObject(what: string, given: string): Promise<JsonObject> {
  const text = await readText(what, given)
  let value: JsonObject | null
  try {
    value = JSON.parse(text) as JsonObject | null
  } catch (cause) {
    throw new CommandProblem(`${what} must be JSON: ${(cause as Error).message}.`, EXIT.usage, { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new CommandProblem(`${what} must be a JSON object.`, EXIT.usage)
  return value
}

/** Where a secret is: `-` (stdin), `@FILE` or `env:NAME`. */
export async function readSecret(what: string, given: string, env: Environment): Promise<string> {
  let secret: string | undefined
  if (given.startsWith('env:')) {
    secret = env[given.slice('env:'.length)]
    if (secret === undefined || secret === '')
      throw new CommandProblem(`${what}: the variable ${given.slice('env:'.length)} is not set.`, EXIT.usage)
  } else if (given === '-' || given.startsWith('@')) secret = (await readText(what, given)).replace(/\r?\n$/, '')
  else
    throw new CommandProblem(
      `${what} must say where the secret is: - for stdin, @FILE, or env:NAME. On the command line others could read it.`,
      EXIT.usage,
    )
  if (secret === '') throw new CommandProblem(`${what} is empty.`, EXIT.usage)
  return secret
}

export function readNamedFile(what: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const why =
      code === 'ENOENT' ? 'it is not there' : code === 'EACCES' ? 'it may not be read' : code === 'EISDIR' ? 'it is a folder' : String(code)
    throw new CommandProblem(`${what}: ${path} cannot be read: ${why}.`, EXIT.usage, { cause })
  }
}

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
