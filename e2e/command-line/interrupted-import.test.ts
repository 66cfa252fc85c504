// `switchyard import` that is killed, interrupted or refused, and continued by a second run.

import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { folderFor, type Result, runProcess, switchyardWith } from '../system/command-line.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { type Service, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

function run(service: Pick<Service, 'url' | 'token'>, args: string[], env: Record<string, string> = {}): Promise<Result> {
  return switchyardWith(env, service, ...args)
}

function json({ stdout }: Result): unknown {
  return JSON.parse(stdout)
}

suite('import', { concurrency: 2 }, () => {
  const past = (index: number): string =>
    JSON.stringify({ type: 'track', userId: `u-${index}`, event: 'Old', timestamp: '2020-02-03T04:05:06.789Z', properties: { index } })

  test('after a kill and a second run, every line is imported exactly once with its own timestamp', async (t) => {
    const LINES = IS_LONG ? 40_000 : 16_000
    const file = join(folderFor(t), 'past.ndjson')
    writeFileSync(file, `${Array.from({ length: LINES }, (_, index) => past(index)).join('\n')}\n`)
    await using service = await startService()
    // So slowly that it is killed long before it has finished.
    const first = runProcess(service, ['import', file, '--rate', '2000'])
    await eventually(
      () => service.stats(),
      ({ accepted }) => accepted > 2_000 && existsSync(`${file}.switchyard-import`),
      { what: 'part of the file is imported', state: () => first.stderr() },
    )
    first.kill('SIGKILL')
    await first.ended
    const { offset } = JSON.parse(readFileSync(`${file}.switchyard-import`, 'utf8')) as { offset: number }
    const before = (await service.stats()).accepted
    assert.ok(before > 0 && before < LINES, `${before} were accepted before the kill`)
    assert.ok(offset > 0, 'it had saved its progress')
    const again = await run(service, ['import', file, '--json'])
    assert.equal(again.code, 0, again.stderr)
    assert.match(again.stderr, /Resuming after line \d+/)
    assert.deepEqual(json(again), { finished: true, dryRun: false, lines: LINES, accepted: LINES, rejected: 0, rejectedByCode: {} })
    assert.equal((await service.stats()).accepted, LINES)
    assert.equal(existsSync(`${file}.switchyard-import`), false)
    const { data } = await service.api<{ data: { timestamp: string; body?: object }[] }>('/messages?userId=u-7')
    assert.equal(data.length, 1)
    assert.match(JSON.stringify(data[0]), /2020-02-03T04:05:06\.789Z/)
  })

  test('rejected lines are reported with number and code, the others are sent, and the exit code is 1', async (t) => {
    const folder = folderFor(t)
    const [file, rejects] = [join(folder, 'past.ndjson.gz'), join(folder, 'rejects.ndjson')]
    const lines = [
      past(0),
      '{"type":"track","userId":"u"}',
      '',
      '{broken',
      `{"type":"track","userId":"u","event":"${'x'.repeat(40_000)}"}`,
      past(1),
      past(1),
    ]
    writeFileSync(file, gzipSync(lines.join('\n')))
    await using service = await startService()
    const checked = await run(service, ['import', file, '--dry-run', '--json'])
    const codes = { event_required: 1, invalid_json: 1, message_too_large: 1 }
    assert.equal(checked.code, 1)
    assert.deepEqual(json(checked), { finished: true, dryRun: true, lines: 7, accepted: 3, rejected: 3, rejectedByCode: codes })
    assert.equal((await service.stats()).accepted, 0)
    const { code, stdout } = await run(service, ['import', file, '--rejects', rejects])
    assert.equal(code, 1)
    assert.match(stdout, /^3 messages imported, 3 lines rejected \(1 event_required, 1 invalid_json, 1 message_too_large\)\.\n$/)
    assert.equal(statSync(rejects).mode & 0o777, 0o600)
    const written = readFileSync(rejects, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { line: number; code: string; text: string })
    assert.deepEqual(
      written.map((reject) => [reject.line, reject.code]),
      [
        [2, 'event_required'],
        [4, 'invalid_json'],
        [5, 'message_too_large'],
      ],
    )
    assert.equal(written[1]?.text, '{broken')
    assert.equal((await service.stats()).accepted, 3, 'two equal lines are two messages')
    await run(service, ['import', file])
    assert.deepEqual(
      [(await service.stats()).accepted, (await service.stats()).duplicates],
      [3, 3],
      'importing the same file again gives the same messages',
    )
  })

  test('a wrong write key and an unreachable service are reported, and nothing is lost', async (t) => {
    const file = join(folderFor(t), 'past.ndjson')
    writeFileSync(file, `${past(0)}\n`)
    await using service = await startService()
    const wrong = await run(service, ['import', file, '--write-key', 'nobody'])
    assert.equal(wrong.code, 3)
    assert.match(wrong.stderr, /invalid_write_key/)
    const away = await run({ url: 'http://127.0.0.1:1', token: '' }, ['import', file, '--write-key', 'k', '--give-up', '1ms'])
    assert.equal(away.code, 3)
    assert.match(away.stderr, /Cannot reach a service at http:\/\/127\.0\.0\.1:1 \(ECONNREFUSED\)/)
    const { code } = await run(service, ['import', file])
    assert.deepEqual([code, (await service.stats()).accepted], [0, 1])
  })

  test('Ctrl-C saves the progress and says how to resume', async (t) => {
    const file = join(folderFor(t), 'past.ndjson')
    writeFileSync(file, Array.from({ length: 3_000 }, (_, index) => past(index)).join('\n'))
    await using service = await startService()
    const first = runProcess(service, ['import', file, '--rate', '500'])
    await eventually(
      () => service.stats(),
      ({ accepted }) => accepted > 0,
      { what: 'part of the file is imported', state: () => first.stderr() },
    )
    first.kill('SIGINT')
    const { code, stderr } = await first.ended
    assert.equal(code, 130)
    assert.match(stderr, /Interrupted after line \d+\. Run the same command again to resume\./)
    const again = await run(service, ['import', file])
    assert.deepEqual([again.code, (await service.stats()).accepted, (await service.stats()).duplicates], [0, 3_000, 0])
  })

  test('the saved state of another file is rejected', async (t) => {
    const file = join(folderFor(t), 'past.ndjson')
    writeFileSync(file, `${past(0)}\n`)
    const state = {
      version: 1,
      fingerprint: 'other',
      fingerprintBytes: 10,
      salt: 's',
      offset: 5,
      line: 1,
      accepted: 1,
      rejected: {},
      rejectsBytes: 0,
    }
    writeFileSync(`${file}.switchyard-import`, JSON.stringify(state))
    await using service = await startService()
    const refused = await run(service, ['import', file])
    assert.deepEqual([refused.code, (await service.stats()).accepted], [2, 0])
    assert.match(refused.stderr, /has changed since the progress of its import was saved in .*\. Use --restart/)
    assert.equal((await run(service, ['import', file, '--restart'])).code, 0)
    assert.equal((await service.stats()).accepted, 1)
  })
})
