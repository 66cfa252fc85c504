// Rules that every command follows.

import assert from 'node:assert/strict'
import test from 'node:test'
import { SETTINGS } from '../config.ts'
import { COMMANDS, SECTIONS } from './commands.ts'
import { EXIT } from './line/command.ts'
import { GLOBAL_FLAGS } from './line/global-flags.ts'
import { describe, helpText } from './line/help.ts'
import { parseCommandLine } from './line/parse-command-line.ts'

/** Splits a command line into words, as far as the examples need it. */
function words(line: string): string[] {
  return Array.from(line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g), ([, single, double, plain]) => single ?? double ?? plain ?? '')
}

test('names are one or two words in kebab-case, and unique', () => {
  const names = COMMANDS.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  for (const name of names) assert.match(name, /^[a-z]+(-[a-z]+)*( [a-z]+(-[a-z]+)*)?$/)
})

test('the main commands exist', () => {
  const names = COMMANDS.map(({ name }) => name)
  const groups = new Set(names.map((name) => name.split(' ')[0]))
  for (const name of ['serve', 'send', 'trace', 'tail', 'sources', 'destinations', 'replay', 'deletions', 'completion'])
    assert.ok(groups.has(name), name)
})

test('summaries are one line without a full stop, sentences end with one', () => {
  for (const { name, summary, details, arguments: taken = [], flags = {} } of COMMANDS) {
    assert.match(summary, /^[A-Z][^\n]{5,110}[^.\n]$/, `${name}: ${summary}`)
    if (details !== undefined) assert.match(details, /\.$/, name)
    for (const { description } of [...taken, ...Object.values(flags)])
      assert.match(description, /^\S[^\n]*[.…]$/, `${name}: ${description}`)
    for (const { defaultText } of Object.values(flags))
      assert.ok(defaultText === undefined || !defaultText.endsWith('.'), `${name}: ${defaultText}`)
  }
})

test('no command redefines a global flag, and only the last argument accepts several values', () => {
  for (const { name, arguments: taken = [], flags = {} } of COMMANDS) {
    for (const flag of Object.keys(flags)) {
      assert.match(flag, /^[a-z]+(-[a-z]+)*$/, name)
      assert.ok(!Object.hasOwn(GLOBAL_FLAGS, flag), `${name} --${flag}`)
    }
    assert.ok(
      taken.slice(0, -1).every(({ many }) => !many),
      name,
    )
    const firstOptional = taken.findIndex(({ optional }) => optional)
    assert.ok(firstOptional === -1 || taken.slice(firstOptional).every(({ optional }) => optional), name)
  }
})

test('every example is a valid command line', () => {
  for (const { name, examples = [] } of COMMANDS) {
    for (const example of examples) {
      const calls = Array.from(
        example.matchAll(/(?:^|\| |<\()(?:\w+=\S+ )*switchyard(?: ((?:'[^']*'|"[^"]*"|[^|>)])*))?/g),
        ([, own = '']) => {
          const line = parseCommandLine(words(own), COMMANDS)
          assert.equal(line.kind, 'run', `${example}: ${JSON.stringify(line)}`)
          return line.kind === 'run' ? line.parsed.command.name : ''
        },
      )
      assert.ok(calls.includes(name), example)
    }
  }
})

test('the list of commands contains each first word, its summary or subcommands, every global flag and every exit code', () => {
  const text = helpText(SECTIONS, {}).replaceAll(/\s+/g, ' ')
  for (const { title, commands } of SECTIONS) {
    assert.ok(text.includes(title))
    for (const { name, summary } of commands) {
      const [first = '', verb] = name.split(' ')
      assert.ok(text.includes(` ${first} `), first)
      assert.ok(verb === undefined ? text.includes(summary) : verb === 'list' || text.includes(verb), name)
    }
  }
  for (const [name, { description }] of Object.entries(GLOBAL_FLAGS))
    assert.ok(text.includes(`--${name}`) && text.includes(description), name)
  for (const code of Object.values(EXIT)) assert.ok(text.includes(` ${code} `), String(code))
})

test('the help of a command contains its usage, summary, arguments, flags, defaults, environment variables and examples', () => {
  for (const command of COMMANDS) {
    const text = helpText(SECTIONS, { command }).replaceAll(/\s+/g, ' ')
    const { name, summary, arguments: taken = [], flags = {}, examples = [] } = command
    assert.ok(text.startsWith(`Usage: switchyard ${name}`))
    const parts = [
      summary,
      ...taken.flatMap(({ name, description }) => [name, description]),
      ...examples.map((line) => line.replaceAll(/\s+/g, ' ')),
    ]
    for (const [flag, { placeholder, description, defaultText, variable, values = [] }] of Object.entries(flags))
      parts.push(placeholder === null ? `--${flag}` : `--${flag} ${placeholder}`, description, defaultText ?? '', variable ?? '', ...values)
    for (const part of parts) assert.ok(text.includes(part), `${name}: ${part}`)
  }
})

test('the help of serve lists every setting with its environment variable', () => {
  const command = COMMANDS.find(({ name }) => name === 'serve')
  assert.ok(command)
  const text = helpText(SECTIONS, { command }).replaceAll(/\s+/g, ' ')
  for (const { variable, description, defaultText } of Object.values(SETTINGS))
    for (const part of [variable, description, defaultText]) assert.ok(text.includes(part), part)
})

test('help fits the terminal', () => {
  for (const command of [undefined, ...COMMANDS]) {
    for (const line of helpText(SECTIONS, command === undefined ? {} : { command }, 80).split('\n')) {
      // Examples are not wrapped, and some words are longer than a column.
      const isExample = command?.examples?.some((example) => line === `  ${example}`) === true
      assert.ok(isExample || line.length <= 80, `${command?.name}: ${line}`)
    }
  }
})

test('the help of a group lists its commands; with --json it is data', () => {
  const text = helpText(SECTIONS, { group: 'sources' })
  for (const verb of ['list', 'show SOURCE', 'create NAME', 'add-key SOURCE [KEY]']) assert.ok(text.includes(`sources ${verb}`), verb)
  assert.match(helpText(SECTIONS, { group: 'replay' }), /DELIVERY_ID[^]*replay list/)
  const described = describe(SECTIONS, { group: 'sources' }) as { sections: { commands: { name: string }[] }[] }
  assert.ok(described.sections.flatMap(({ commands }) => commands).every(({ name }) => name.startsWith('sources ')))
})
