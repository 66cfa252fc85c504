// Runs the programs of this folder, each in its own language, against requests signed by our own signer and against the published
// vectors. Also checks that docs/guide/verifying-webhooks.md shows exactly these files.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { after, suite, test } from 'node:test'
import { generateSecret, signBody, signStandardWebhook } from '@switchyard/webhook'

const root = join(import.meta.dirname, '..', '..')
const page = readFileSync(join(root, 'docs', 'guide', 'verifying-webhooks.md'), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'switchyard-verify-'))
after(() => rmSync(folder, { recursive: true, force: true }))

interface Request {
  note: string
  body: string
  headers: Record<string, string>
  sharedSecret?: string
  signingSecrets?: string[]
  nowSeconds?: number
  /** The expected output; where it is only `invalid`, each program may give its own reason. */
  expected: string
}

const UNPROVEN = 'invalid: batch_unproven'
const NOW = 1_794_646_800
const SECRET = 'clé ✓ of the destination'
const [OLD, NEW] = [generateSecret(), generateSecret(24)]

const single = JSON.stringify({ version: 1, type: 'track', userId: 'u-1', event: 'Öffnet "das" \\ 门 {', properties: { total: 12.5 } })
// Contains everything that shows whether the first message is cut out at its correct end, and not serialized again.
const intricate = JSON.stringify({
  2: 'first',
  10: 1e21,
  a: { b: ['}', '"', '\\', { c: '\\"]}' }], small: 1e-7 },
  text: '\u001f é ✓ 😀 </script>',
})
const batch = `[${intricate},${single}]`
const forged = `[${intricate},${single.replace('u-1', 'u-2')}]`

function standard(
  note: string,
  expected: string,
  request: Partial<Request> & { signedWith?: string[]; signedBody?: string } = {},
): Request {
  const { signedWith = [OLD], signedBody, body = single, headers = {}, signingSecrets = [OLD], nowSeconds = NOW, ...rest } = request
  const signed = signStandardWebhook({ id: 'msg_1', timestampSeconds: NOW, body: signedBody ?? body }, signedWith)
  return { note, body, headers: { ...signed, ...headers }, signingSecrets, nowSeconds, expected, ...rest }
}

function shared(note: string, expected: string, request: Partial<Request> & { signedBody?: string } = {}): Request {
  const { signedBody, body = single, headers = {}, sharedSecret = SECRET, ...rest } = request
  return { note, body, headers: { 'X-Signature': signBody(signedBody ?? body, SECRET), ...headers }, sharedSecret, expected, ...rest }
}

function inUpperCase({ headers, ...request }: Request): Request {
  return { ...request, headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value])) }
}

const wrong = `v1,${'A'.repeat(43)}=`
const signedNow = signStandardWebhook({ id: 'msg_1', timestampSeconds: Math.floor(Date.now() / 1000), body: single }, OLD)

const OWN: Request[] = [
  standard('Standard Webhooks, with text that is not ASCII', 'valid'),
  standard('by the clock of the machine', 'valid', { headers: { ...signedNow }, nowSeconds: 0 }),
  inUpperCase(standard('header names in another case', 'valid')),
  standard('the whole of a batch', 'valid', { body: batch }),
  standard('a batch whose second message was changed', 'invalid: signature_invalid', { body: forged, signedBody: batch }),
  standard('a body that was changed', 'invalid: signature_invalid', { body: single.replace('u-1', 'u-2'), signedBody: single }),
  standard('a body with a space more', 'invalid: signature_invalid', { body: `${single} `, signedBody: single }),
  standard('another id', 'invalid: signature_invalid', { headers: { 'webhook-id': 'msg_2' } }),
  standard('another secret', 'invalid: signature_invalid', { signingSecrets: [NEW] }),
  standard('two secrets at the sender, the old one here', 'valid', { signedWith: [NEW, OLD] }),
  standard('two secrets at the sender, the new one here', 'valid', { signedWith: [NEW, OLD], signingSecrets: [NEW] }),
  standard('the new secret at the sender, both here', 'valid', { signedWith: [NEW], signingSecrets: [OLD, NEW] }),
  standard('a secret without its padding', 'valid', { signingSecrets: [OLD.replace(/=+$/, '')] }),
  standard('the right signature after others', 'valid', {
    headers: { 'webhook-signature': `v2,x ${wrong} ${standard('', '').headers['webhook-signature']} v1a,y` },
  }),
  standard('only others', 'invalid: signature_invalid', { headers: { 'webhook-signature': `${wrong} ${wrong}` } }),
  standard('five minutes old', 'valid', { nowSeconds: NOW + 300 }),
  standard('older', 'invalid: timestamp_outside_tolerance', { nowSeconds: NOW + 301 }),
  standard('five minutes ahead', 'valid', { nowSeconds: NOW - 300 }),
  standard('further ahead', 'invalid: timestamp_outside_tolerance', { nowSeconds: NOW - 301 }),
  standard('a time that is no number', 'invalid: header_invalid', { headers: { 'webhook-timestamp': '1e9' } }),
  standard('no id', 'invalid: signature_missing', { headers: { 'webhook-id': '' } }),
  standard('no time', 'invalid: signature_missing', { headers: { 'webhook-timestamp': '' } }),
  standard('no signature', 'invalid: signature_missing', { headers: { 'webhook-signature': '' } }),
  shared('X-Signature, with text and secret that are not ASCII', 'valid'),
  shared('X-Signature of a batch, of which it proves the first message alone', UNPROVEN, { body: batch }),
  shared('X-Signature of a batch of one', 'valid', { body: `[${intricate}]` }),
  shared('a batch whose second message was changed', UNPROVEN, { body: forged, signedBody: batch }),
  shared('a genuine message with a forged one behind it', UNPROVEN, { body: forged, signedBody: intricate }),
  shared('a batch whose first message was changed', 'invalid: signature_invalid', { body: `[${single}]`, signedBody: batch }),
  shared('X-Signature of another body', 'invalid: signature_invalid', { body: single.replace('u-1', 'u-2'), signedBody: single }),
  shared('X-Signature with another secret', 'invalid: signature_invalid', { sharedSecret: 'another' }),
  shared('no X-Signature', 'invalid: signature_missing', { headers: { 'X-Signature': '' } }),
  shared('both kinds', 'valid', { headers: standard('', '').headers, signingSecrets: [OLD], nowSeconds: NOW }),
  shared('both kinds, of a batch', 'valid', {
    body: batch,
    headers: standard('', '', { body: batch }).headers,
    signingSecrets: [OLD],
    nowSeconds: NOW,
  }),
  shared('both kinds asked for, one sent', 'invalid: signature_missing', { signingSecrets: [OLD], nowSeconds: NOW }),
]

/** Vectors that are rejected for their shape or the content of the body although a signature is valid: these programs do not check that. */
const RIGHT_SIGNATURE = /^(two signature headers joined|17 signatures|signed, but)/

function published(): Request[] {
  const read = (name: string): unknown => JSON.parse(readFileSync(join(root, 'packages', 'webhook', name), 'utf8'))
  type Signed = { note: string; body: string; xSignature: string; sharedSecret?: string }
  type Standard = { note?: string; id: string; timestamp: string; body: string; signature: string; secrets?: string[]; secret?: string }
  type Refused = Pick<Request, 'note' | 'body' | 'headers' | 'nowSeconds'> & { secrets: Pick<Request, 'sharedSecret' | 'signingSecrets'> }
  const vectors = read('vectors.json') as { sharedSecret: string; messages: Signed[]; batch: Signed; standardWebhooks: Standard }
  const extra = read('vectors-extra.json') as { xSignature: Signed[]; standardWebhooks: Standard[]; refusals: Refused[] }
  return [
    ...[...vectors.messages, vectors.batch, ...extra.xSignature].map(({ note, body, xSignature, sharedSecret = vectors.sharedSecret }) => ({
      note: `vector: ${note}`,
      body,
      headers: { 'x-signature': xSignature },
      sharedSecret,
      expected: Array.isArray(JSON.parse(body)) && (JSON.parse(body) as unknown[]).length > 1 ? UNPROVEN : 'valid',
    })),
    ...[vectors.standardWebhooks, ...extra.standardWebhooks].map(
      ({ note, id, timestamp, body, signature, secret = '', secrets = [secret] }) => ({
        note: `vector: ${note ?? 'Standard Webhooks'}`,
        body,
        headers: { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature },
        signingSecrets: secrets,
        nowSeconds: Number(timestamp),
        expected: 'valid',
      }),
    ),
    ...extra.refusals
      .filter(({ note }) => !RIGHT_SIGNATURE.test(note))
      // Each vector needs a process, so one or two of each kind of error are enough.
      .filter((_, index) => index % 4 === 0)
      .map((refused): Request => Object.assign(refused, refused.secrets, { note: `refused vector: ${refused.note}`, expected: 'invalid' })),
  ]
}

interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

function run(command: string[], { body, headers, sharedSecret, signingSecrets, nowSeconds }: Partial<Request>): Promise<Ended> {
  const [file = '', ...args] = command
  const env: NodeJS.ProcessEnv = {
    PATH: process.env['PATH'],
    LANG: 'C.UTF-8',
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
    ...(sharedSecret === undefined ? {} : { SHARED_SECRET: sharedSecret }),
    ...(signingSecrets === undefined ? {} : { SIGNING_SECRETS: signingSecrets.join(' ') }),
    ...(nowSeconds ? { NOW: String(nowSeconds) } : {}),
  }
  const child = spawn(file, [...args, ...Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`)], { env })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  // A program may exit before it has read all of its input.
  child.stdin.on('error', () => {})
  child.stdin.end(body ?? '')
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

/** The output of a tool, or null if it is not installed. */
function tool(...[file, ...args]: [string, ...string[]]): string | null {
  try {
    return execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return null
  }
}

/** Kept between runs, as compiling Go's own library takes most of the time. */
function buildGo(source: string): string {
  const built = join(folder, 'verify')
  const cache = join(process.env['SWITCHYARD_TEST_CACHE'] ?? tmpdir(), 'switchyard-go-build')
  const env = {
    PATH: process.env['PATH'],
    GOCACHE: cache,
    GOPATH: join(cache, 'path'),
    GOFLAGS: '-mod=mod',
    GOPROXY: 'off',
    GOTOOLCHAIN: 'local',
    CGO_ENABLED: '0',
  }
  execFileSync('go', ['build', '-gcflags=all=-N -l', '-o', built, source], { env, cwd: folder })
  return built
}

interface Language {
  program: string
  fence: string
  /** The command that runs it, or null if the language is not installed. */
  command: (path: string) => string[] | null
  needs: string
  requests?: Request[]
}

const withTool =
  (found: string | null) =>
  (path: string): string[] | null =>
    found === null ? null : [found, path]

const LANGUAGES: Language[] = [
  // The package's own tests run all of them; this tests the program.
  {
    program: 'with-package.mjs',
    fence: 'js',
    command: withTool(process.execPath),
    needs: 'node',
    requests: OWN.filter((_, index) => index % 4 === 0),
  },
  { program: 'verify.mjs', fence: 'js', command: withTool(process.execPath), needs: 'node' },
  // The interpreter itself: the command on the PATH may be a wrapper script that searches for it each time.
  {
    program: 'verify.py',
    fence: 'python',
    command: withTool(tool('python3', '-c', 'import sys; print(sys.executable)')),
    needs: 'python3',
  },
  { program: 'verify.go', fence: 'go', command: (path) => (tool('go', 'version') === null ? null : [buildGo(path)]), needs: 'go' },
  { program: 'verify.rb', fence: 'ruby', command: withTool(tool('ruby', '-e', 'print RbConfig.ruby')), needs: 'ruby' },
  { program: 'verify.php', fence: 'php', command: withTool(tool('php', '-r', 'echo PHP_BINARY;')), needs: 'php' },
]

suite('verifying in another language', { concurrency: 2 }, () => {
  for (const { program, fence, command, needs, requests = [...OWN, ...published()] } of LANGUAGES) {
    const path = join(import.meta.dirname, program)

    test(`${program} accepts genuine requests and says what is wrong with the others`, async (t) => {
      const found = command(path)
      if (found === null) return t.skip(`${needs} is not installed here`)
      const seen: Record<string, string> = {}
      const expected: Record<string, string> = {}
      for (const request of requests) {
        const { code, stdout, stderr } = await run(found, request)
        const said = request.expected === 'invalid' ? stdout.replace(/: .*/, '') : stdout
        seen[request.note] = `${said.trimEnd()}, ${code}${stderr}`
        expected[request.note] = `${request.expected}, ${request.expected.startsWith('valid') ? 0 : 1}`
      }
      assert.deepEqual(seen, expected)

      const without = await run(found, { body: single })
      assert.deepEqual([without.code, without.stdout], [2, ''], 'a missing secret is a configuration error, not an empty key')
      assert.match(without.stderr, /^Set SIGNING_SECRETS or SHARED_SECRET\.\r?\n$/)
      const malformed = await run(found, standard('', '', { signedWith: [OLD], signingSecrets: ['whsec_short'] }))
      assert.deepEqual([malformed.code, malformed.stdout], [2, ''], 'so is a secret that is too short')
      assert.doesNotMatch(malformed.stderr, /short/, 'the secret is not printed')
    })

    test(`${program} is in the guide unchanged`, () => {
      const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
        .filter(([, language]) => language === fence)
        .map(([, , text]) => text)
      assert.ok(
        blocks.includes(readFileSync(path, 'utf8')),
        `docs/guide/verifying-webhooks.md must contain all of ${program}, as \`\`\`${fence}`,
      )
    })
  }

  test('the commands in the guide print what it shows', async () => {
    const [, script = '', printed = ''] = /^```sh\n(printf[\s\S]*?)^```\n+```text\n([\s\S]*?)^```$/m.exec(page) ?? []
    assert.match(script, /verify\.mjs/)
    const env = { PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}` }
    const output = execFileSync('sh', ['-c', script], { cwd: root, env, encoding: 'utf8' })
    assert.equal(output, printed)
  })

  test('the guide lists every program and no other', () => {
    const named = [...page.matchAll(/examples\/verify\/([\w.-]+)\)/g)].map(([, name]) => name)
    assert.deepEqual(new Set(named), new Set([...LANGUAGES.map(({ program }) => program), basename(import.meta.filename)]))
  })
})
