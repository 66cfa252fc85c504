// The exit codes, and the error for what the user did wrong or can fix.

export const EXIT = {
  ok: 0,
  /** The command ran but failed: a delivery failed, or a check found a problem. */
  failed: 1,
  /** The command line, a setting, or a file that it names is invalid. */
  usage: 2,
  /** The service cannot be reached, or it rejected the token. */
  unreachable: 3,
  /** The requested resource does not exist. */
  notFound: 4,
  /** `apply --dry-run`, `import-workspace --dry-run` or `plan diff` found differences. */
  differs: 5,
  /** `serve` was told to stop, and not everything was finished in time. */
  forced: 6,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** Shown as its message only, without a stack trace. */
export class CommandProblem extends Error {
  override name = 'CommandProblem'
  readonly exit: ExitCode

  constructor(message: string, exit: ExitCode = EXIT.failed, options?: ErrorOptions) {
    super(message, options)
    this.exit = exit
  }
}

/** The command line, a setting, or a file that it names is invalid. */
export class UsageProblem extends CommandProblem {
  constructor(message: string, options?: ErrorOptions) {
    super(message, EXIT.usage, options)
  }
}
