// Generates help from the same command data that parsing and completion use.

import { type Argument, type Command, EXIT, type Flag } from './command.ts'
import { GLOBAL_FLAGS } from './global-flags.ts'

export interface Section {
  title: string
  commands: readonly Command[]
}

export interface Subject {
  command?: Command
  group?: string
}

export const EXIT_SENTENCES: Record<keyof typeof EXIT, string> = {
  ok: 'Success.',
  failed: 'The command failed: for example, a delivery failed or a check found a problem.',
  usage: 'The command line, a setting, or a file that it names is invalid.',
  unreachable: 'The service cannot be reached, or it rejected the token.',
  notFound: 'The requested resource does not exist.',
  differs: '`apply --dry-run`, `import-workspace --dry-run` or `plan diff` found differences.',
  forced:
    '`serve` was told to stop and had to exit before everything was finished. The log lists what was not finished. No accepted message is lost, but some may be sent again after the next start.',
  interrupted: 'The command was interrupted.',
}

const WIDEST = 100

export function helpText(sections: readonly Section[], { command, group }: Subject, columns = WIDEST): string {
  const width = Math.max(40, Math.min(columns, WIDEST))
  const lines =
    command !== undefined
      ? commandHelp(command, width)
      : group !== undefined
        ? groupHelp(sections, group, width)
        : listHelp(sections, width)
  return `${lines.join('\n')}\n`
}

/** The same as data, for --json. */
export function describe(sections: readonly Section[], { command, group }: Subject): unknown {
  if (command !== undefined) return described(command)
  const flags = describedFlags(GLOBAL_FLAGS)
  const exitCodes = (Object.keys(EXIT) as (keyof typeof EXIT)[]).map((name) => ({ code: EXIT[name], description: EXIT_SENTENCES[name] }))
  const inGroup = ({ name }: Command): boolean => group === undefined || name === group || name.startsWith(`${group} `)
  return {
    sections: sections
      .map(({ title, commands }) => ({ title, commands: commands.filter(inGroup).map(described) }))
      .filter(({ commands }) => commands.length > 0),
    flags,
    exitCodes,
  }
}

function described({ name, summary, details, examples, arguments: positional, flags }: Command): object {
  return { name, summary, details, arguments: positional ?? [], flags: describedFlags(flags ?? {}), examples: examples ?? [] }
}

function describedFlags(flags: Readonly<Record<string, Flag>>): object[] {
  return Object.entries(flags).map(([name, flag]) => Object.assign({ name: `--${name}` }, flag))
}

function listHelp(sections: readonly Section[], width: number): string[] {
  const rows = sections.map(({ title, commands }) => ({ title, rows: grouped(commands) }))
  const wide = Math.max(...rows.flatMap(({ rows }) => rows.map(([name]) => name.length))) + 2
  return [
    'Usage: switchyard [COMMAND] [arguments] [flags]',
    '',
    'Without a command, switchyard runs the service (the same as `switchyard serve`).',
    ...rows.flatMap(({ title, rows }) => ['', title].concat(rows.flatMap(([name, summary]) => row(name, summary, wide, width)))),
    '',
    'Global flags',
    ...flagLines(GLOBAL_FLAGS, width),
    '',
    ...exitLines(width),
    '',
    'Run `switchyard COMMAND --help` for more about a command.',
  ]
}

/** One row for each first word: what it does alone, and its other subcommands. */
function grouped(commands: readonly Command[]): [name: string, summary: string][] {
  const words = [...new Set(commands.map(({ name }) => name.split(' ', 1)[0] as string))]
  return words.map((word) => {
    const own = commands.find(({ name }) => name === word) ?? commands.find(({ name }) => name === `${word} list`)
    const others = commands.filter(({ name }) => name !== own?.name && name.startsWith(`${word} `))
    const verbs = others.map(({ name }) => name.slice(word.length + 1)).join(', ')
    return [word, verbs === '' ? (own?.summary ?? '') : `${own?.summary ?? ''} (also: ${verbs})`]
  })
}

function groupHelp(sections: readonly Section[], group: string, width: number): string[] {
  const commands = sections.flatMap(({ commands }) => commands).filter(({ name }) => name === group || name.startsWith(`${group} `))
  const own = commands.find(({ name }) => name === group)
  const rows = commands.filter((command) => command !== own).map((command): [string, string] => [usageOf(command), command.summary])
  const wide = Math.min(44, Math.max(...rows.map(([name]) => name.length)) + 2)
  return [
    ...(own !== undefined
      ? commandHelp(own, width)
      : [
          `Usage: switchyard ${group} COMMAND [arguments] [flags]`,
          ...(commands.some(({ name }) => name === `${group} list`) ? ['', `Without a command, runs \`switchyard ${group} list\`.`] : []),
        ]),
    '',
    own === undefined ? 'Commands' : 'See also',
    ...rows.flatMap(([name, summary]) => row(name, summary, wide, width)),
    '',
    `Run \`switchyard ${group} COMMAND --help\` for more about one of them.`,
  ]
}

function commandHelp(command: Command, width: number): string[] {
  const { summary, details, examples = [], arguments: positional = [], flags = {} } = command
  const wide = Math.max(0, ...positional.map(({ name }) => name.length)) + 2
  return [
    `Usage: switchyard ${usageOf(command)}${Object.keys(flags).length > 0 ? ' [flags]' : ''}`,
    '',
    ...wrap(`${summary}.`, width),
    ...(details === undefined ? [] : details.split('\n\n').flatMap((paragraph) => [''].concat(wrap(paragraph, width)))),
    ...(positional.length === 0
      ? []
      : ['', 'Arguments', ...positional.flatMap(({ name, description }) => row(name, description, wide, width))]),
    ...(Object.keys(flags).length === 0 ? [] : ['', 'Flags', ...flagLines(flags, width)]),
    ...(examples.length === 0 ? [] : ['', examples.length === 1 ? 'Example' : 'Examples', ...examples.map((line) => `  ${line}`)]),
    '',
    ...wrap(
      command.isService
        ? 'The flags --json, --help and --version are also accepted.'
        : `Global flags: ${Object.keys(GLOBAL_FLAGS)
            .map((name) => `--${name}`)
            .join(', ')}. See \`switchyard --help\`.`,
      width,
    ),
  ]
}

export function usageOf({ name, arguments: positional = [] }: Command): string {
  return [name, ...positional.map(argumentUsage)].join(' ')
}

function argumentUsage({ name, optional, many }: Argument): string {
  const text = many ? `${name}...` : name
  return optional ? `[${text}]` : text
}

export function flagUsage(name: string, { placeholder }: Flag): string {
  return placeholder === null ? `--${name}` : `--${name} ${placeholder}`
}

function flagLines(flags: Readonly<Record<string, Flag>>, width: number): string[] {
  const names = Object.entries(flags).map(([name, flag]) => flagUsage(name, flag))
  const wide = Math.min(30, Math.max(...names.map((name) => name.length)) + 2)
  return Object.values(flags).flatMap((flag, at) => row(names[at] as string, flagSentence(flag), wide, width))
}

export function flagSentence({ description, defaultText, variable, many, values }: Flag): string {
  return [
    description,
    ...(values === undefined ? [] : [`One of ${values.join(', ')}.`]),
    ...(many ? ['Can be given several times.'] : []),
    ...(defaultText === undefined ? [] : [`Default: ${defaultText}.`]),
    ...(variable === undefined ? [] : [`Environment: ${variable}.`]),
  ].join(' ')
}

function exitLines(width: number): string[] {
  return [
    'Exit codes',
    ...(Object.keys(EXIT) as (keyof typeof EXIT)[]).flatMap((name) => row(String(EXIT[name]), EXIT_SENTENCES[name], 5, width)),
  ]
}

/** A name that is wider than its column gets its own line. */
function row(name: string, description: string, wide: number, width: number): string[] {
  const lines = wrap(description, width - wide - 2)
  const indent = ' '.repeat(wide + 2)
  if (name.length + 1 > wide) return [`  ${name}`, ...lines.map((line) => indent + line)]
  return lines.map((line, at) => (at === 0 ? `  ${name.padEnd(wide)}${line}` : indent + line))
}

export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const paragraph of text.split('\n')) {
    let line = ''
    for (const word of paragraph.split(' ')) {
      if (line !== '' && line.length + 1 + word.length > width) {
        lines.push(line)
        line = word
      } else line = line === '' ? word : `${line} ${word}`
    }
    lines.push(line)
  }
  return lines
}
