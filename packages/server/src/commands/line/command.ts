// The definition of a `switchyard` command: data, from which help and completion are generated, and a function that runs it. A command
// uses the control API of a running service and never opens the store of one. The files of all commands are loaded on every call, for
// help and completion, so heavy modules (the service, YAML, the client) are imported inside `run`.

import type { Api } from '../service/api.ts'
import type { ExitCode } from '../service/problem.ts'
import type { Output } from './output.ts'

export { CommandProblem, EXIT, type ExitCode, UsageProblem } from '../service/problem.ts'

export interface Argument {
  /** The name shown in help, such as MESSAGE_ID. */
  name: string
  description: string
  optional?: true
  /** Takes all remaining arguments. */
  many?: true
  /** The allowed values, for completion and validation. */
  values?: readonly string[]
}

export interface Flag {
  /** The name of the value in help, such as NUMBER. Null for a flag without a value. */
  placeholder: string | null
  description: string
  /** The default, as text for help. */
  defaultText?: string
  /** The environment variable with the same meaning. The flag takes precedence. */
  variable?: string
  /** May be given more than once. */
  many?: true
  /** A flag without a value that accepts one after an equals sign: `--lenient-keys=off`. */
  optionalValue?: true
  /** The allowed values, for completion and validation. */
  values?: readonly string[]
}

export interface Command {
  /** One or two words: `trace`, `sources create`. */
  name: string
  /** One line in the list of commands. */
  summary: string
  /** More about the command, in paragraphs. */
  details?: string
  /** Complete command lines. */
  examples?: readonly string[]
  arguments?: readonly Argument[]
  /** By name in kebab-case, without the dashes. */
  flags?: Readonly<Record<string, Flag>>
  /** Set for the command that runs the service: it calls no service, handles signals itself, and keeps running when its stdout is closed. */
  isService?: true
  /** What else is wrong, besides the words of the command line, so that all problems are reported together. */
  otherProblems?(flags: ReadonlyMap<string, readonly string[]>, env: Call['env']): string[]
  /** Resolves with the exit code, or with nothing on success. Throws a CommandProblem for an error that the user can fix. */
  run(call: Call): Promise<ExitCode | void>
}

export interface Call {
  readonly arguments: readonly string[]
  /** The value of a flag; the last one if it was given several times. */
  readonly flag: (name: string) => string | undefined
  readonly flags: (name: string) => readonly string[]
  readonly has: (name: string) => boolean
  /** Whether --json was given. `out` then gets one JSON value, or one per line for a command that runs until it is stopped. */
  readonly json: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly api: Api
  readonly out: Output
  /** Asks in the terminal and returns the answer. Null if stdin or stderr is not a terminal. */
  readonly ask: ((question: string) => Promise<string>) | null
  /** Aborted by Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal
}
