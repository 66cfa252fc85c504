// The supervisor with small programs in the place of the service: real processes, a real port, real signals.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import type { ProgramOptions } from './fixtures/supervised-program.ts'

/** The exit code of a process that was told to stop and could not finish everything. */
const FORCED = 6
const PROGRAM = join(import.meta.dirname, 'fixtures', 'supervised-program.ts')
const DEADLINE_MS = 60_000

interface Line {
  msg: string
  child?: number
  pid?: number
  [field: string]: unknown
}

interface Answer {
  index: number
  pid: number
}

interface Program {
  pid: number
  stdout(): string
  log(): Line[]
  kill(signal: NodeJS.Signals): void
  /** Resolves when the condition holds. It is checked again after every output and four times a second. */
  until(what: string, condition: () => boolean | Promise<boolean>): Promise<void>
  /** Resolves when all processes listen, for the nth time. */
  complete(nth?: number): Promise<void>
  ask(path?: string): Promise<Answer>
  metrics(): Promise<string>
  /** The process ids of the latest process of each index. */
  pids(): Map<number, number>
  prevent(): void
  ended: Promise<{ code: number | null; ms: number }>
}

async function start(t: TestContext, options: Partial<ProgramOptions> = {}, isPrevented = false): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-supervisor-'))
  const obstacle = join(folder, 'obstacle')
  const prevent = (): void => writeFileSync(obstacle, '')
  if (isPrevented) prevent()
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify({ processes: 2, port: 0, obstacle, forcedCode: FORCED, ...options })], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  const watchers = new Set<() => void>()
  const notify = (): void => {
    for (const watcher of watchers) watcher()
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    notify()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    notify()
  })
  let signalledMs = performance.now()
  // `close` would wait for processes that outlive the supervisor.
  const ended = new Promise<{ code: number | null; ms: number }>((resolve) => {
    child.on('exit', (code) => resolve({ code, ms: performance.now() - signalledMs }))
  })
  const log = (): Line[] =>
    stderr
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
  const pids = (): Map<number, number> =>
    new Map(log().flatMap(({ msg, child, pid }) => (msg === 'started a process' ? [[child as number, pid as number] as const] : [])))
  const until: Program['until'] = async (what, condition) => {
    const deadlineMs = performance.now() + DEADLINE_MS
    while (!(await condition())) {
      if (performance.now() > deadlineMs) throw new Error(`not in time: ${what}\n${stdout}${stderr}`)
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          watchers.delete(done)
          resolve()
        }
        const timer = setTimeout(done, 250)
        watchers.add(done)
      })
    }
  }
  t.after(() => {
    child.kill('SIGKILL')
    for (const pid of pids().values()) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  const url = (path: string): string => `http://127.0.0.1:${/listens on (\d+)/.exec(stdout)?.[1]}${path}`
  return {
    pid: child.pid as number,
    stdout: () => stdout,
    log,
    kill(signal) {
      signalledMs = performance.now()
      child.kill(signal)
    },
    until,
    complete: (nth = 1) =>
      until(`all processes listen, ${nth} times`, () => log().filter(({ msg }) => msg === 'all processes are listening').length >= nth),
    ask: async (path = '/') => (await (await fetch(url(path))).json()) as Answer,
    metrics: async () => await (await fetch(url('/metrics'))).text(),
    pids,
    prevent,
    ended,
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

suite('a supervisor', { concurrency: 2 }, () => {
  test('all processes share one port that was picked, only one announces it, and each gets connections in turn', async (t) => {
    const program = await start(t, { processes: 3 })
    await program.complete()
    const indexes = new Set<number>()
    for (let nth = 0; nth < 6; nth++) indexes.add((await program.ask()).index)
    assert.deepEqual(indexes, new Set([1, 2, 3]))
    assert.match(program.stdout(), /^listens on \d+\n$/)
    const lines = program.log().map(({ msg, child }) => `${msg} ${child}`)
    assert.equal(lines[0], 'started a process 1')
    program.kill('SIGTERM')
    const { code } = await program.ended
    assert.equal(code, 0)
    assert.equal(program.log().at(-1)?.msg, 'stopped')
  })

  test('processes that end are replaced under their index, and the port stays the same even if all end at once', async (t) => {
    const program = await start(t)
    await program.complete()
    await assert.rejects(program.ask('/exit'))
    await program.complete(2)
    const exit = program.log().find(({ msg }) => /ended unexpectedly/.test(msg))
    assert.equal(exit?.['code'], 3)
    const before = program.pids()
    for (const pid of before.values()) process.kill(pid, 'SIGKILL')
    await program.complete(3)
    const answers = [await program.ask(), await program.ask()]
    assert.deepEqual(new Set(answers.map(({ index }) => index)), new Set([1, 2]))
    for (const { index, pid } of answers) assert.notEqual(pid, before.get(index))
    assert.match(program.stdout(), /^listens on \d+\n$/)
  })

  test('failed messages to processes, and late messages of those that have ended, change nothing', async (t) => {
    const program = await start(t)
    await program.complete()
    process.kill(program.pids().get(2) as number, 'SIGKILL')
    await program.complete(2)
    const before = program.pids()
    for (let nth = 1; nth <= 2; nth++) {
      program.kill('SIGUSR2')
      await program.until('it has repeated them', () => program.log().filter(({ msg }) => msg === 'repeated').length === nth)
    }
    const answers = [await program.ask(), await program.ask()]
    assert.deepEqual(new Map(answers.map(({ index, pid }) => [index, pid])), before)
    program.kill('SIGTERM')
    assert.equal((await program.ended).code, 0)
    assert.deepEqual(program.pids(), before)
  })

  test('a process that ends again and again is replaced after growing delays', async (t) => {
    const program = await start(t)
    await program.complete()
    for (let nth = 2; nth <= 4; nth++) {
      process.kill(program.pids().get(2) as number, 'SIGKILL')
      await program.complete(nth)
    }
    const delays = program
      .log()
      .filter(({ msg }) => /ended unexpectedly/.test(msg))
      .map((line) => [line.child, line['signal'], line['delayMs']])
    assert.deepEqual(delays, [
      [2, 'SIGKILL', 0],
      [2, 'SIGKILL', 1_000],
      [2, 'SIGKILL', 2_000],
    ])
  })

  test('a process that hangs is killed and replaced; meanwhile the others serve, and the metrics say that it is missing', async (t) => {
    const program = await start(t, { limits: { hungMs: 10_000 } })
    await program.complete()
    for (let nth = 0; nth < 10; nth++) await program.ask()
    assert.match(await program.metrics(), /round_trips_total 10\n[^]*answered"\} 2\nswitchyard_processes\{state="missing"\} 0/)
    const hung = program.pids().get(1) as number
    process.kill(hung, 'SIGSTOP')
    // The process that hangs gets one connection, which fails when it is killed. All others are answered.
    const asked = [program.ask(), program.ask(), program.ask()]
    const settled = Promise.allSettled(asked)
    assert.equal((await Promise.any(asked)).index, 2)
    for (let nth = 0; nth < 3; nth++) assert.equal((await program.ask()).index, 2)
    const metrics = await program.metrics()
    assert.match(metrics, /answered"\} 1\nswitchyard_processes\{state="missing"\} 1/)
    assert.ok(Number(/round_trips_total (\d+)/.exec(metrics)?.[1]) >= 10, metrics)
    await program.until('it is replaced', () => program.pids().get(1) !== hung)
    await program.complete(2)
    assert.ok(program.log().some(({ msg, child }) => /has not responded for 10 s/.test(msg) && child === 1))
    assert.equal(isAlive(hung), false)
    assert.deepEqual((await settled).map(({ status }) => status).sort(), ['fulfilled', 'fulfilled', 'rejected'])
    assert.ok(Number(/round_trips_total (\d+)/.exec(await program.metrics())?.[1]) >= 10)
  })

  test('if the first process cannot start, no other is started, and the supervisor fails at once', async (t) => {
    const program = await start(t, { processes: 4 }, true)
    const { code } = await program.ended
    assert.equal(code, 1)
    await program.until('its output', () => program.stdout() !== '')
    assert.equal(program.stdout(), 'cannot start\n')
    assert.equal(program.pids().size, 1)
  })

  test('if no process can be started any more, the supervisor gives up after a few attempts, one at a time', async (t) => {
    const program = await start(t, { limits: { failedStarts: 3 } })
    await program.complete()
    program.prevent()
    for (const pid of program.pids().values()) process.kill(pid, 'SIGKILL')
    const { code } = await program.ended
    assert.equal(code, 1)
    assert.equal(program.stdout().match(/cannot start/g)?.length, 3)
    assert.match(program.log().at(-1)?.msg ?? '', /3 in a row failed to start: giving up/)
  })

  test('if Node.js cannot be started, the log says why, without the arguments of the process', async (t) => {
    const program = await start(t, { executable: '/nonexistent/node' })
    assert.equal((await program.ended).code, 1)
    const line = program.log().find(({ msg }) => msg === 'a process could not be started')
    assert.equal(line?.['reason'], 'spawn /nonexistent/node ENOENT')
    assert.doesNotMatch(JSON.stringify(program.log()), /supervised-program|obstacle/)
  })

  test('if the system refuses to start another process, the others go on', async (t) => {
    const program = await start(t)
    await program.complete()
    process.kill(program.pid, 'SIGUSR2')
    process.kill(program.pids().get(2) as number, 'SIGKILL')
    const refused = (): Line[] => program.log().filter(({ msg }) => msg === 'a process could not be started')
    await program.until('two failed attempts', () => refused().length >= 2)
    assert.match(String(refused()[0]?.['reason']), /E2BIG/)
    assert.equal((await program.ask()).index, 1)
    program.kill('SIGTERM')
    assert.equal((await program.ended).code, 0)
  })

  test('as long as a process is ready, one that cannot start is tried again', async (t) => {
    const program = await start(t, { limits: { failedStarts: 2 } })
    await program.complete()
    program.prevent()
    process.kill(program.pids().get(2) as number, 'SIGKILL')
    await program.until('three failed attempts', () => (program.stdout().match(/cannot start/g)?.length ?? 0) >= 3)
    assert.equal((await program.ask()).index, 1)
    program.kill('SIGTERM')
    assert.equal((await program.ended).code, 0)
  })

  test('a process that does not stop is killed at the limit, and the exit code says so', async (t) => {
    const program = await start(t, { limits: { stopMs: 1_500 } })
    await program.complete()
    await program.ask('/disobey')
    program.kill('SIGTERM')
    const { code, ms } = await program.ended
    assert.equal(code, FORCED)
    assert.ok(ms >= 1_400, `${ms} ms`)
    assert.ok(program.log().some(({ msg }) => /did not stop within 1.5 s and are killed/.test(msg)))
    for (const pid of program.pids().values()) assert.equal(isAlive(pid), false)
  })

  for (const [codes, expected] of [
    [[FORCED, 0], FORCED],
    [[FORCED, 3], 1],
    [[3, FORCED], 1],
  ] as const) {
    test(`if its processes stop with ${codes.join(' and ')}, the exit code is ${expected}`, async (t) => {
      const program = await start(t)
      await program.complete()
      for (const code of codes) await program.ask(`/stop-with/${code}`)
      program.kill('SIGTERM')
      assert.equal((await program.ended).code, expected)
    })
  }

  test('a second signal kills all processes at once', async (t) => {
    const program = await start(t)
    await program.complete()
    await program.ask('/disobey')
    await program.ask('/disobey')
    program.kill('SIGINT')
    await program.until('it is stopping', () => program.log().some(({ msg }) => msg === 'stopping'))
    program.kill('SIGTERM')
    const { code, ms } = await program.ended
    assert.equal(code, 1)
    // The first signal alone would kill them after 9.6 s.
    assert.ok(ms < 8_000, `${ms} ms`)
    await program.until('all are dead', () => [...program.pids().values()].every((pid) => !isAlive(pid)))
  })

  test('if the supervisor is killed, its processes stop', async (t) => {
    const program = await start(t)
    await program.complete()
    program.kill('SIGKILL')
    await program.ended
    await program.until('all have ended', () => [...program.pids().values()].every((pid) => !isAlive(pid)))
  })
})
