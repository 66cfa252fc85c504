// Parses the words of a command line into a command, its arguments and its flags. Pure: all problems are returned together as sentences.
// They never quote the value of a flag, because it may be a secret.

import { nearest } from '../../api/nearest.ts'
import type { Command, Flag } from './command.ts'
import { GLOBAL_FLAGS } from './global-flags.ts'

export interface Parsed {
  command: Command
  arguments: string[]
  flags: Map<string, string[]>
}

export type CommandLine =
  | { kind: 'run'; parsed: Parsed }
  /** Help for one command, for a group such as `sources`, or for all commands. */
  | { kind: 'help'; command?: Command; group?: string; json: boolean }
  | { kind: 'version' }
  /** With `parsed`, the command itself may have more to say. */
  | { kind: 'problems'; messages: string[]; help: string; parsed?: Parsed }

/** What `switchyard` without a command runs. */
export const DEFAULT_COMMAND = 'serve'
/** The subcommand that `sources` without one runs. */
const DEFAULT_VERB = 'list'

export function parseCommandLine(argv: readonly string[], commands: readonly Command[]): CommandLine {
  const leading = leadingGlobals(argv)
  const words = argv.slice(leading.length)
  const isHelp = [...leading, ...words.slice(0, beforeDashes(words))].some((word) => word === '--help' || word === '-h')
  const json = argv.includes('--json')

  if (words[0] === 'help') {
    const asked = words.slice(1).filter((word) => !word.startsWith('-'))
    return asked.length === 0 ? { kind: 'help', json } : parseCommandLine([...asked, '--help', ...(json ? ['--json'] : [])], commands)
  }
  if (words[0] === undefined || words[0].startsWith('-')) {
    const onlyGlobals = words.length === 0
    if (isHelp && (onlyGlobals || words.every((word) => word === '-h'))) return { kind: 'help', json }
    if (leading.includes('--version') || words.includes('--version')) return { kind: 'version' }
    return parseFor(find(commands, DEFAULT_COMMAND) as Command, leading, words, isHelp, json)
  }

  const [first = '', second = ''] = words
  const two = find(commands, `${first} ${second}`)
  if (two !== undefined) return parseFor(two, leading, words.slice(2), isHelp, json)
  const one = find(commands, first)
  if (one !== undefined) {
    // The help of `replay` also lists `replay list` and the others.
    if (isHelp && commands.some(({ name }) => name.startsWith(`${first} `))) return { kind: 'help', group: first, json }
    return parseFor(one, leading, words.slice(1), isHelp, json)
  }
  const verbs = commands.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => name.slice(first.length + 1))
  if (verbs.length === 0) {
    const names = [...new Set(commands.map(({ name }) => name.split(' ', 1)[0] as string)), 'help']
    return problem(`Unknown command: ${shown(first)}. ${hint(nearest(first, names))}`, 'switchyard --help')
  }
  if (isHelp && (second === '' || second.startsWith('-'))) return { kind: 'help', group: first, json }
  const listed = find(commands, `${first} ${DEFAULT_VERB}`)
  if ((second === '' || second.startsWith('-')) && listed !== undefined)
    return parseFor(listed, leading, words.slice(1), isHelp, json, first)
  if (second === '' || second.startsWith('-'))
    return problem(`${first} needs a subcommand: ${verbs.join(', ')}.`, `switchyard ${first} --help`)
  const near = nearest(second, verbs)
  return problem(
    `Unknown command: ${first} ${shown(second)}. ${hint(near === undefined ? undefined : `${first} ${near}`)}`,
    `switchyard ${first} --help`,
  )
}

/** `typed` is the command as it was typed, which errors repeat: `sources` for `sources list`. */
function parseFor(command: Command, leading: string[], words: string[], isHelp: boolean, json: boolean, typed = command.name): CommandLine {
  if (isHelp) return { kind: 'help', command, json }
  if (words.slice(0, beforeDashes(words)).includes('--version') || leading.includes('--version')) return { kind: 'version' }
  const { url, token, ...others } = GLOBAL_FLAGS
  const globals: Readonly<Record<string, Flag>> = command.isService ? others : { ...others, url, token }
  const { positional, flags, messages } = readWords([...leading, ...words], { ...globals, ...command.flags }, typed)
  messages.push(...argumentProblems(command, positional, typed))
  const parsed = { command, arguments: positional, flags }
  return messages.length > 0 ? { kind: 'problems', messages, help: `switchyard ${typed} --help`, parsed } : { kind: 'run', parsed }
}

function readWords(words: readonly string[], known: Readonly<Record<string, Flag>>, commandName: string) {
  const positional: string[] = []
  const flags = new Map<string, string[]>()
  const messages: string[] = []
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as string
    if (word === '--') {
      positional.push(...words.slice(at + 1))
      break
    }
    // A single dash means stdin; a negative number is a value.
    if (!word.startsWith('-') || word === '-' || /^-\d/.test(word)) {
      positional.push(word)
      continue
    }
    const equals = word.indexOf('=')
    const name = equals === -1 ? word.replace(/^--/, '') : word.slice(2, equals)
    const flag = word.startsWith('--') && Object.hasOwn(known, name) ? known[name] : undefined
    if (flag === undefined) {
      const given = equals === -1 ? word : word.slice(0, equals)
      const near = nearest(
        given,
        Object.keys(known).map((other) => `--${other}`),
      )
      messages.push(`Unknown flag for ${commandName}: ${shown(given)}.${near === undefined ? '' : ` Did you mean ${near}?`}`)
      // Skip its value, if it has one, so that it is not reported as well.
      if (equals === -1 && words[at + 1]?.startsWith('-') === false) at += 1
      continue
    }
    let value = equals === -1 ? undefined : word.slice(equals + 1)
    if (flag.placeholder === null) {
      if (value !== undefined && !flag.optionalValue) messages.push(`--${name} does not take a value.`)
      flags.set(name, value === undefined ? [] : [value])
      continue
    }
    if (value === undefined && words[at + 1]?.startsWith('--') === false) {
      at += 1
      value = words[at]
    }
    if (value === undefined) messages.push(`--${name} needs a value: --${name} ${flag.placeholder}.`)
    else if (flag.values !== undefined && !flag.values.includes(value)) messages.push(`--${name} must be one of ${flag.values.join(', ')}.`)
    else if (flags.has(name) && !flag.many) messages.push(`--${name} can be given only once.`)
    else flags.set(name, [...(flags.get(name) ?? []), value])
  }
  return { positional, flags, messages }
}

function argumentProblems({ arguments: expected = [] }: Command, given: readonly string[], name: string): string[] {
  const missing = expected.slice(given.length).filter(({ optional }) => !optional)
  if (missing.length > 0)
    return [`Missing ${missing.length === 1 ? 'argument' : 'arguments'} for ${name}: ${missing.map(({ name }) => name).join(', ')}.`]
  if (!expected.some(({ many }) => many) && given.length > expected.length)
    return [`Unexpected argument for ${name}: ${shown(given[expected.length] as string)}.`]
  return expected.flatMap(({ name, values }, at) => {
    const value = given[at]
    return values === undefined || value === undefined || values.includes(value) ? [] : [`${name} must be one of ${values.join(', ')}.`]
  })
}

/** The global flags before the command, with their values. */
function leadingGlobals(argv: readonly string[]): string[] {
  let end = 0
  while (end < argv.length) {
    const word = argv[end] as string
    const name = word.slice(2).split('=', 1)[0] as string
    const flag: Flag | undefined =
      word.startsWith('--') && Object.hasOwn(GLOBAL_FLAGS, name) ? GLOBAL_FLAGS[name as keyof typeof GLOBAL_FLAGS] : undefined
    if (flag === undefined && word !== '-h') break
    end += flag === undefined || flag.placeholder === null || word.includes('=') ? 1 : 2
  }
  return argv.slice(0, Math.min(end, argv.length))
}

function beforeDashes(words: readonly string[]): number {
  const at = words.indexOf('--')
  return at === -1 ? words.length : at
}

function find(commands: readonly Command[], name: string): Command | undefined {
  return commands.find((command) => command.name === name)
}

function problem(message: string, help: string): CommandLine {
  return { kind: 'problems', messages: [message], help }
}

function hint(near: string | undefined): string {
  return near === undefined ? 'Run `switchyard --help` for a list of commands.' : `Did you mean ${near}?`
}

/** The word as typed, shortened if it is long. */
function shown(word: string): string {
  return word.length > 60 ? `${word.slice(0, 60)}…` : word
}
