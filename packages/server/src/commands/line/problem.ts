// How a command ends: its exit code, and what a person did wrong or can mend.

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
  /** Of a look without a change: there is something to change. */
  differs: 5,
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
