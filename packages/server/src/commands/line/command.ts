// What a command of `switchyard` is: data, from which help and completion are made, and one function. A command talks to a
// running service through its control API and to a person through its output; it never opens the store of a running one.
// Every file of a command is read for every call, for help and completion: what is heavy (the service, YAML, the client)
// is imported within `run`.

import type { Api } from '../service/api.ts'
import type { Output } from './output.ts'
import type { ExitCode } from './problem.ts'

export { CommandProblem, EXIT, type ExitCode } from './problem.ts'

export interface Argument {
  /** As help shows it: MESSAGE_ID. */
  name: string
  sentence: string
  optional?: true
  /** Takes all that follow. */
  many?: true
  /** The values it takes, for completion and for refusing others. */
  values?: readonly string[]
}

export interface Flag {
  /** As help shows its value: NUMBER. Null: it takes none and is there or not. */
  placeholder: string | null
  sentence: string
  /** The default in words. */
  usual?: string
  /** The environment variable that says the same; the flag wins. */
  variable?: string
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
  /**
   * Of the service itself: `arguments` are all that follow its name, as they stand; it minds its own signals, and goes on
   * when nobody reads its output any more.
   */
  isService?: true
  /** Resolves with the exit code. What a person did wrong or can mend is thrown as a CommandProblem. */
  run(call: Call): Promise<ExitCode>
}

export interface Call {
  readonly arguments: readonly string[]
  /** The value of a flag, the last one if there are several. */
  readonly flag: (name: string) => string | undefined
  readonly flags: (name: string) => readonly string[]
  readonly has: (name: string) => boolean
  /** Whether --json was given: then `out` gets one JSON value, or one per line where there is no end. */
  readonly json: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly api: Api
  readonly out: Output
  /** Aborted by Ctrl-C and SIGTERM. */
  readonly signal: AbortSignal
}
