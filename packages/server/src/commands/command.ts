// What a command of `switchyard` is: data, from which help and completion are made, and one function. A command talks to a
// running service through its control API and to a person through its output; it never opens the store of a running one.

import type { Api } from './api.ts'
import type { Output } from './output.ts'

export interface Argument {
  /** As help shows it: MESSAGE_ID. */
  name: string
  sentence: string
  optional?: true
  /** Takes all that follow. */
  many?: true
}

export interface Flag {
  /** As help shows its value: NUMBER. Null: it takes none and is there or not. */
  placeholder: string | null
  sentence: string
  /** The default in words. */
  usual?: string
  /** May be given more than once. */
  many?: true
  /** The values it takes, for completion and for refusing others. */
  values?: readonly string[]
}

export interface Command {
  /** One or two words: `trace`, `sources create`. */
  name: string
  /** One line in the list of commands. */
  summary: string
  /** What else a person must know, in paragraphs. */
  details?: string
  /** Lines that can be typed as they stand. */
  examples?: readonly string[]
  arguments?: readonly Argument[]
  /** By name in kebab-case, without the dashes. */
  flags?: Readonly<Record<string, Flag>>
  /** Resolves with the exit code. What a person did wrong or can mend is thrown as a CommandProblem. */
  run(call: Call): Promise<ExitCode>
}

export interface Call {
  readonly arguments: readonly string[]
  /** The value of a flag, the last one if there are several. */
  flag(name: string): string | undefined
  flags(name: string): readonly string[]
  has(name: string): boolean
  /** Whether --json was given: then `out` gets one JSON value, or one per line where there is no end. */
  readonly json: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly api: Api
  readonly out: Output
  /** Aborted by Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal
}

export const EXIT = {
  ok: 0,
  /** It was tried and did not succeed: a delivery failed, a check found something. */
  failed: 1,
  /** The command line or a file that it names is wrong. */
  usage: 2,
  /** The service cannot be reached or did not take the token. */
  unreachable: 3,
  /** What was asked for is not there. */
  notFound: 4,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** Shown as one sentence, without a stack. */
export class CommandProblem extends Error {
  override name = 'CommandProblem'
  readonly exit: ExitCode

  constructor(message: string, exit: ExitCode = EXIT.failed, options?: ErrorOptions) {
    super(message, options)
    this.exit = exit
  }
}
