import assert from 'node:assert/strict'
import test from 'node:test'
import { type Command, EXIT } from './command.ts'
import { type CommandLine, parseCommandLine } from './parse-command-line.ts'

const run = async (): Promise<typeof EXIT.ok> => EXIT.ok
const COMMANDS: readonly Command[] = [
  {
    name: 'serve',
    summary: 'Serves',
    isService: true,
    flags: { port: { placeholder: 'PORT', description: '' }, lenient: { placeholder: null, description: '', optionalValue: true } },
    run,
  },
  {
    name: 'send',
    summary: 'Sends',
    arguments: [{ name: 'TYPE', description: '', optional: true, values: ['track', 'page'] }],
    flags: {
      event: { placeholder: 'EVENT', description: '' },
      wait: { placeholder: null, description: '' },
      tag: { placeholder: 'TAG', description: '', many: true },
      mode: { placeholder: 'MODE', description: '', values: ['fast', 'slow'] },
    },
    run,
  },
  { name: 'sources list', summary: 'Lists', run },
  { name: 'sources show', summary: 'Shows', arguments: [{ name: 'SOURCE', description: '' }], run },
  { name: 'replay', summary: 'Replays', arguments: [{ name: 'ID', description: '', optional: true, many: true }], run },
  { name: 'replay list', summary: 'Lists replays', run },
  { name: 'keys add', summary: 'Adds', run },
]

function parse(...argv: string[]): CommandLine {
  return parseCommandLine(argv, COMMANDS)
}

/** `send [track] event=a,b wait=` */
function shown(...argv: string[]): string {
  const line = parse(...argv)
  if (line.kind !== 'run') return line.kind === 'problems' ? line.messages.join(' ') : line.kind
  const { command, arguments: words, flags } = line.parsed
  return [command.name, `[${words.join(' ')}]`, ...[...flags].map(([name, values]) => `${name}=${values.join()}`)].join(' ')
}

test('commands of one and of two words; the longer name is preferred', () => {
  assert.equal(shown('send'), 'send []')
  assert.equal(shown('sources', 'show', 'a'), 'sources show [a]')
  assert.equal(shown('replay', 'list'), 'replay list []')
  assert.equal(shown('replay', '1-0', '2-0'), 'replay [1-0 2-0]')
})

test('a group without a subcommand lists', () => {
  assert.equal(shown('sources'), 'sources list []')
  assert.equal(shown('sources', '--json'), 'sources list [] json=')
  assert.equal(shown('keys'), 'keys needs a subcommand: add.')
})

test('without a command it runs serve, whose flags are read like all others', () => {
  assert.equal(shown(), 'serve []')
  assert.equal(shown('--port', '9000'), 'serve [] port=9000')
  assert.equal(shown('--json', '--port', '9000'), 'serve [] json= port=9000')
  assert.equal(shown('serve', '--port=9000', '--lenient'), 'serve [] port=9000 lenient=')
  assert.equal(shown('serve', '--lenient=off'), 'serve [] lenient=off')
  assert.equal(shown('serve', '--prot', '80'), 'Unknown flag for serve: --prot. Did you mean --port?')
  assert.equal(shown('serve', '8080'), 'Unexpected argument for serve: 8080.')
  assert.equal(shown('serve', '--url', 'http://127.0.0.1'), 'Unknown flag for serve: --url.')
  assert.equal(shown('serve', '--port', '--lenient'), '--port needs a value: --port PORT.')
  assert.equal(shown('serve', '--port', '1', '--port', '2'), '--port can be given only once.')
})

test('flags with a space or an equals sign, before and after arguments', () => {
  assert.equal(shown('send', '--event', 'A b', 'track', '--wait'), 'send [track] event=A b wait=')
  assert.equal(shown('send', '--event=--x=y'), 'send [] event=--x=y')
  assert.equal(shown('send', '--event='), 'send [] event=')
  assert.equal(shown('send', '--tag', '1', '--tag=2'), 'send [] tag=1,2')
  assert.equal(shown('replay', '--', '--json', '-h'), 'replay [--json -h]')
  assert.equal(shown('replay', '-', '-1'), 'replay [- -1]')
})

test('global flags can be before or after the command', () => {
  assert.equal(shown('--json', '--url', 'http://x', 'send', '--token=t'), 'send [] json= url=http://x token=t')
})

test('all problems are reported together, with suggestions', () => {
  assert.equal(shown('sned'), 'Unknown command: sned. Did you mean send?')
  assert.equal(shown('nonsense'), 'Unknown command: nonsense. Run `switchyard --help` for a list of commands.')
  assert.equal(shown('sources', 'shwo'), 'Unknown command: sources shwo. Did you mean sources show?')
  assert.equal(
    shown('send', '--evnet', 'x', '--mode', 'no'),
    'Unknown flag for send: --evnet. Did you mean --event? --mode must be one of fast, slow.',
  )
  assert.equal(shown('sources', '--jsn'), 'Unknown flag for sources: --jsn. Did you mean --json?')
  assert.equal(shown('send', '-e'), 'Unknown flag for send: -e.')
  assert.equal(shown('send', '--event'), '--event needs a value: --event EVENT.')
  assert.equal(shown('send', '--event', '--wait'), '--event needs a value: --event EVENT.')
  assert.equal(shown('send', '--event', 'a', '--event', 'b'), '--event can be given only once.')
  assert.equal(shown('send', '--wait=yes'), '--wait does not take a value.')
  assert.equal(shown('send', 'fly'), 'TYPE must be one of track, page.')
  assert.equal(shown('send', 'track', 'page'), 'Unexpected argument for send: page.')
  assert.equal(shown('sources', 'show'), 'Missing argument for sources show: SOURCE.')
})

test('the value of a flag is never quoted, because it may be a secret', () => {
  for (const argv of [
    ['send', '--token', 'hush', '--token', 'hush'],
    ['send', '--tokn=hush'],
    ['send', '--mode', 'hush'],
    ['send', '--wait=hush'],
  ])
    assert.doesNotMatch(shown(...argv), /hush/)
})

test('names of Object.prototype are neither flags nor commands', () => {
  assert.match(shown('send', '--constructor', 'x'), /Unknown flag for send: --constructor/)
  assert.match(shown('send', '--__proto__=x'), /Unknown flag for send: --__proto__/)
  assert.match(shown('constructor'), /Unknown command/)
  assert.match(shown('--hasOwnProperty'), /Unknown flag for serve: --hasOwnProperty/)
})

test('help at every level, with --help and with help', () => {
  assert.deepEqual(parse('--help'), { kind: 'help', json: false })
  assert.deepEqual(parse('-h'), { kind: 'help', json: false })
  assert.deepEqual(parse('help'), { kind: 'help', json: false })
  assert.deepEqual(parse('sources', '--help', '--json'), { kind: 'help', group: 'sources', json: true })
  assert.deepEqual(parse('replay', '-h'), { kind: 'help', group: 'replay', json: false })
  for (const argv of [
    ['sources', 'show', '--help'],
    ['--help', 'sources', 'show'],
    ['help', 'sources', 'show'],
  ]) {
    const line = parse(...argv)
    assert.equal(line.kind === 'help' && line.command?.name, 'sources show', argv.join(' '))
  }
  const serve = parse('--port', '9000', '--help')
  assert.equal(serve.kind === 'help' && serve.command?.name, 'serve')
  assert.match(shown('help', 'sned'), /Did you mean send/)
})

test('--version takes precedence over everything else', () => {
  for (const argv of [['--version'], ['send', '--version'], ['--version', 'send'], ['--port', '1', '--version']])
    assert.equal(parse(...argv).kind, 'version', argv.join(' '))
})

test('a very long word is shortened in messages', () => {
  assert.ok(shown('x'.repeat(10_000)).length < 200)
})
