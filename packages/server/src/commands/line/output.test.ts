import assert from 'node:assert/strict'
import test from 'node:test'
import { createOutput, type Output, widthOf } from './output.ts'

interface Screen {
  out: Output
  text: { stdout: string; stderr: string }
}

function screen(options: { terminal?: boolean; columns?: number; json?: boolean; colours?: boolean; now?: () => number } = {}): Screen {
  const { terminal = false, columns = 80, json = false, colours = true, now } = options
  const text = { stdout: '', stderr: '' }
  const stream = (name: 'stdout' | 'stderr') => ({ isTTY: terminal, columns, write: (part: string) => (text[name] += part) })
  const out = createOutput({ stdout: stream('stdout'), stderr: stream('stderr'), json, colours, ...(now === undefined ? {} : { now }) })
  return { out, text }
}

const ROWS = [
  ['src_1', 'default', 'a key that is rather long'],
  ['src_22', 'x', 'short'],
]

test('a table is aligned, and not truncated when it is piped', () => {
  const { out, text } = screen({ columns: 20 })
  out.table(['id', 'name', 'write keys'], ROWS)
  assert.equal(text.stdout, 'ID      NAME     WRITE KEYS\nsrc_1   default  a key that is rather long\nsrc_22  x        short\n')
})

test('on a terminal the table fits, and the id is not truncated', () => {
  const { out, text } = screen({ terminal: true, columns: 30, colours: false })
  out.table(['id', 'name', 'write keys'], ROWS)
  const lines = text.stdout.trimEnd().split('\n')
  for (const line of lines) assert.ok(widthOf(line) <= 30, line)
  assert.equal(lines[1], 'src_1   default  a key that i…')
})

test('ids are truncated last, because users copy them', () => {
  const { out, text } = screen({ terminal: true, columns: 50, colours: false })
  out.table(['id', 'message id', 'event'], [['1-0', '7f3c0a52-71b0-4c40-885c', 'An event with a very long name indeed']])
  assert.match(text.stdout, /^1-0 {2}7f3c0a52-71b0-4c40-885c {2}An event with a ver…$/m)
})

test('columns stay aligned under wide and combining characters and colours', () => {
  const { out, text } = screen({ terminal: true })
  out.table(
    ['name', 'state'],
    [
      ['日本', out.paint('green', 'ok')],
      ['e\u0301', 'x'],
      ['abcd', 'y'],
    ],
  )
  assert.deepEqual(text.stdout.trimEnd().split('\n').slice(1), ['日本  \x1b[32mok\x1b[0m', 'e\u0301     x', 'abcd  y'])
})

test('colours are used only on terminals, and can be turned off', () => {
  const shown = (options: Parameters<typeof screen>[0]): string => {
    const { out, text } = screen(options)
    out.line(out.paint('red', 'x'))
    return text.stdout
  }
  assert.equal(shown({ terminal: true }), '\x1b[31mx\x1b[0m\n')
  assert.equal(shown({ terminal: true, colours: false }), 'x\n')
  assert.equal(shown({}), 'x\n')
})

test('text from a sender cannot control the terminal', () => {
  const hostile = 'a\x1b[2J\x1b]0;title\x07\rb\x1b[8mhidden\u009b31m\u202eabc\x1b[31mred\nnot a line\u2028nor this'
  for (const say of [
    (out: Output) => out.line(hostile),
    (out: Output) => out.remark(hostile),
    (out: Output) => out.table([hostile], [[hostile]]),
  ]) {
    const { out, text } = screen({ terminal: true })
    say(out)
    // The heading of a table is bold.
    const written = (text.stdout + text.stderr).replaceAll(/\n/g, '').replace('\x1b[1m', '').replace('\x1b[0m', '')
    assert.doesNotMatch(written, /[\p{Cc}\u202e\u2028]/u)
    assert.doesNotMatch(text.stdout + text.stderr, /^not a line/m)
  }
})

test('text of several lines keeps its line breaks, and its control characters are escaped on a terminal only', () => {
  const { out, text } = screen({ terminal: true })
  out.text('one\n  two\x1b[2J\u2028')
  assert.equal(text.stdout, 'one\n  two\\u001b[2J\\u2028\n')
  const pipe = screen()
  pipe.out.text('one\n  two\u2028\u202e')
  assert.equal(pipe.text.stdout, 'one\n  two\u2028\u202e\n')
})

test('dangerous characters in JSON are escaped, and the value stays the same', () => {
  const { out, text } = screen()
  const value = { event: 'a\x1b[2J\u009b\u202e"\n' }
  out.json(value)
  assert.doesNotMatch(text.stdout.trimEnd(), /[\p{Cc}\u202e]/u)
  assert.deepEqual(JSON.parse(text.stdout), value)
  assert.equal(text.stdout.split('\n').length, 2, 'on one line')
  const terminal = screen({ terminal: true })
  terminal.out.json({ a: 1 })
  assert.equal(terminal.text.stdout, '{\n  "a": 1\n}\n')
})

test('progress on a terminal is a bar, which is redrawn after other lines and cleared at the end', () => {
  let nowMs = 0
  const { out, text } = screen({ terminal: true, columns: 60, now: () => (nowMs += 1_000) })
  const progress = out.progress('Replayed')
  progress.update(1, 2, 'slowly')
  assert.equal(text.stderr, `${'█'.repeat(12)}${'░'.repeat(12)}  50% Replayed: 1 of 2, slowly`)
  text.stderr = ''
  out.line('a line')
  assert.ok(text.stderr.startsWith('\r\x1b[K█'))
  text.stderr = ''
  progress.end()
  assert.equal(text.stderr, '\r\x1b[K')
  text.stderr = ''
  out.remark('over')
  assert.equal(text.stderr, 'over\n')
})

test('progress elsewhere is a line every few seconds, and nothing with --json', () => {
  let nowMs = 0
  const { out, text } = screen({ now: () => nowMs })
  const progress = out.progress('Sent')
  for (let done = 0; done <= 10; done += 1) {
    nowMs += 1_000
    progress.update(done, 10)
  }
  progress.end()
  assert.equal(text.stderr, 'Sent: 4 of 10\nSent: 9 of 10\nSent: 10 of 10\n')
  const json = screen({ json: true, terminal: true })
  json.out.progress('Sent').update(1, 2)
  assert.equal(json.text.stderr, '')
})
