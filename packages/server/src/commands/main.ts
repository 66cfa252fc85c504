// Runs one command line: parses it, runs the command, and exits with the command's exit code. A CommandProblem is printed on stderr
// without a stack trace; any other error is a bug and is printed with one.

import { cwd } from 'node:process'
import { VERSION } from '../api/version.ts'
import { commandForm, inForm } from '../installation/command-form.ts'
import { harmless } from '../logging/terminal-text.ts'
import { type Call, CommandProblem, EXIT, type ExitCode } from './line/command.ts'
import { controlToken, serviceUrl } from './line/global-flags.ts'
import { describe, helpText } from './line/help.ts'
import { createOutput } from './line/output.ts'
import { DEFAULT_COMMAND, type Parsed, parseCommandLine } from './line/parse-command-line.ts'
import { serve } from './serve.ts'
import { createApi } from './service/api.ts'

type Process = Pick<NodeJS.Process, 'argv' | 'env' | 'on' | 'exit'> &
  Record<'stdout' | 'stderr', NodeJS.WriteStream> & { stdin?: NodeJS.ReadStream }

export async function runCommandLine(process: Process): Promise<void> {
  const { stdout, stderr, env } = process
  const argv = process.argv.slice(2)
  // A start of the service does not load the other commands.
  const commands = argv[0] === undefined || argv[0] === DEFAULT_COMMAND ? [serve] : (await import('./commands.ts')).COMMANDS
  const line = parseCommandLine(argv, commands)
  const isService = line.kind === 'run' && line.parsed.command.isService === true
  // With `switchyard tail | head` the reader closes the pipe, which is not an error. The service keeps running without a reader.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (!isService) process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed)
  })
  stderr.on('error', () => {})
  // Where the reader stands, with the address that the reader gave.
  const own = (text: string, url?: string): string => inForm(text, commandForm({ cwd: cwd(), ...(url === undefined ? {} : { url }) }))

  const code = await run()
  // On some systems writes to pipes are asynchronous, and exit() would truncate them.
  await Promise.all([stdout, stderr].map((stream) => new Promise((resolve) => stream.write('', resolve))))
  process.exit(code)

  async function run(): Promise<ExitCode> {
    switch (line.kind) {
      case 'help': {
        const { SECTIONS } = await import('./commands.ts')
        stdout.write(line.json ? `${JSON.stringify(describe(SECTIONS, line), null, 2)}\n` : own(helpText(SECTIONS, line, stdout.columns)))
        return EXIT.ok
      }
      case 'version':
        stdout.write(`${VERSION}\n`)
        return EXIT.ok
      case 'problems': {
        const { command, flags = new Map() } = line.parsed ?? {}
        const messages = [...line.messages, ...(command?.otherProblems?.(flags, env) ?? [])]
        stderr.write(own(`${[...messages, `Run \`${line.help}\` for usage.`].join('\n')}\n`))
        return EXIT.usage
      }
      case 'run':
        return await runCommand(process, line.parsed, own)
    }
  }
}

/** Runs the command, and returns its exit code. */
async function runCommand(
  process: Process,
  { command, arguments: positional, flags }: Parsed,
  own: (text: string, url?: string) => string,
): Promise<ExitCode> {
  const { stdin, stdout, stderr, env } = process
  const abort = new AbortController()
  if (!command.isService) {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        // A second signal exits at once.
        if (abort.signal.aborted) process.exit(EXIT.interrupted)
        abort.abort()
      })
    }
  }
  const json = flags.has('json')
  const flag = (name: string): string | undefined => flags.get(name)?.at(-1)
  const out = createOutput({
    stdout,
    stderr,
    json,
    colours: !flags.has('no-color') && !env['NO_COLOR'],
    inForm: (text) => own(text, flag('url')),
  })
  let api: ReturnType<typeof createApi> | undefined
  const call: Call = {
    arguments: positional,
    flag,
    flags: (name) => flags.get(name) ?? [],
    has: (name) => flags.has(name),
    json,
    env,
    // Created on first use, so that a command that does not call the service needs no valid URL either.
    get api() {
      const url = serviceUrl(flag('url'), env)
      api ??= createApi({
        url,
        ...controlToken(flag('token'), env, url),
        signal: abort.signal,
        onSlow: (elapsedMs) => out.remark(`Waiting for the service: ${Math.round(elapsedMs / 1_000)} s so far.`),
      })
      return api
    },
    out,
    ask: stdin?.isTTY === true && stderr.isTTY ? (question) => ask(stdin, stderr, question, abort.signal) : null,
    signal: abort.signal,
  }
  try {
    return (await command.run(call)) ?? EXIT.ok
  } catch (error) {
    if (abort.signal.aborted) return EXIT.interrupted
    if (error instanceof CommandProblem) {
      stderr.write(own(`${error.message.split('\n').map(harmless).join('\n')}\n`, flag('url')))
      return error.exit
    }
    const trace = error instanceof Error ? (error.stack ?? error.message) : String(error)
    stderr.write(`switchyard ${command.name} failed: ${trace.split('\n').map(harmless).join('\n')}\n`)
    return EXIT.failed
  }
}

async function ask(input: NodeJS.ReadStream, output: NodeJS.WriteStream, question: string, signal: AbortSignal): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input, output })
  try {
    return await terminal.question(harmless(question), { signal })
  } finally {
    terminal.close()
  }
}
