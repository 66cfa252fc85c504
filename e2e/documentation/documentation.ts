// Reads the code blocks and links of the guides, and runs the steps of a guide as a reader would.
//
//   ```sh                    is run in a shell and must exit with 0, or with 1 if it says `exits:1`
//   ```sh start              is left running, as in a separate terminal
//   ```js send.mjs           is saved under that name
//   ```text                  must have been printed, line by line; `…` matches anything. `text started`: by what was left running
//   ```sh elsewhere:FILE     is not run here, but by FILE
//
// Neither GitHub nor the site shows these words.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { freePort } from '../../packages/server/src/store/fixtures/free-port.ts'
import { environment } from '../system/command-line.ts'
import { CLI, type Service } from '../system/service.ts'
import { Signals } from '../system/signals.ts'

export const ROOT = join(import.meta.dirname, '..', '..')

export interface Block {
  language: string
  words: string[]
  text: string
  /** The line of its fence, from 1. */
  line: number
}

export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = []
  let open: { block: Block; fence: string; lines: string[] } | null = null
  for (const [at, line] of markdown.split('\n').entries()) {
    const [, fence = '', info = ''] = /^ *(`{3,})(.*)$/.exec(line) ?? []
    if (open === null) {
      if (fence === '') continue
      const [language = '', ...words] = info.trim().split(/\s+/)
      open = { block: { language, words, text: '', line: at + 1 }, fence, lines: [] }
    } else if (fence === open.fence && info.trim() === '') {
      blocks.push({ ...open.block, text: `${open.lines.join('\n')}\n` })
      open = null
    } else open.lines.push(line)
  }
  assert.equal(open, null, 'a fence is not closed')
  return blocks
}

/** The text without code. */
export function proseOf(markdown: string): string {
  return markdown.replaceAll(/^ *(`{3,})[^\n]*\n[\s\S]*?\n *\1 *$/gm, '').replaceAll(/`[^`\n]*`/g, '')
}

/** The ids of explicit anchors in a page, which are not headings. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id)
}

/** The ids that GitHub gives to headings: lower case, without punctuation, with a number if an id was used before. */
export function headingsOf(markdown: string): Set<string> {
  const names = new Set<string>()
  const counts = new Map<string, number>()
  const withoutBlocks = markdown.replaceAll(/^ *(`{3,})[^\n]*\n[\s\S]*?\n *\1 *$/gm, '')
  for (const [, title = ''] of withoutBlocks.matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const words = title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    const name = words.replaceAll(' ', '-')
    const count = counts.get(name) ?? 0
    counts.set(name, count + 1)
    names.add(count === 0 ? name : `${name}-${count}`)
  }
  return names
}

/** Links to files of the repository or to headings. */
export function relativeLinksOf(markdown: string): string[] {
  return [...proseOf(markdown).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, href = '']) => href)
    .filter((href) => !/^[a-z][a-z\d+.-]*:/i.test(href))
}

/** The broken links of a file, with reasons. */
export function brokenLinksOf(file: string): string[] {
  return relativeLinksOf(readFileSync(join(ROOT, file), 'utf8')).flatMap((href) => {
    const [path = '', heading] = decodeURI(href).split('#')
    const target = path === '' ? join(ROOT, file) : join(ROOT, dirname(file), path)
    if (!existsSync(target)) return [`${file}: ${href} is not there`]
    if (heading === undefined || !target.endsWith('.md')) return []
    const text = readFileSync(target, 'utf8')
    return headingsOf(text).has(heading) || anchorsOf(text).includes(heading) ? [] : [`${file}: ${href} has no such heading`]
  })
}

const DEADLINE_MS = 60_000

/** Follows a guide instead of a person, with a folder, a shell, and a service on a free port. */
export class Reader implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'switchyard-guide-'))
  readonly #service: Service | null
  readonly #env: Record<string, string>
  readonly #replaced: [RegExp, string][]
  readonly #started: Started[] = []
  #printed: () => string = () => ''
  #last: Started | null = null

  private constructor(service: Service | null, ports: readonly number[]) {
    this.#service = service
    const bin = join(this.folder, 'bin')
    mkdirSync(bin)
    // As at the root of a clone. The folder stands for the reader's clone.
    writeFileSync(join(this.folder, 'switchyard'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' --no-color "$@"\n`, { mode: 0o755 })
    symlinkSync(process.execPath, join(bin, 'node'))
    // As `npm install` would, from this tree.
    mkdirSync(join(this.folder, 'node_modules', '@switchyard'), { recursive: true })
    for (const name of ['node', 'webhook'])
      symlinkSync(join(ROOT, 'packages', name), join(this.folder, 'node_modules', '@switchyard', name))
    this.#env = environment(null, {
      ...service?.storeEnv,
      ...(service === null ? {} : { SWITCHYARD_URL: service.url }),
      PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}`,
    })
    this.#replaced = ports.map((port, at): [RegExp, string] => [new RegExp(`\\b900${at}\\b`, 'g'), String(port)])
    if (service === null) return
    this.#replaced.push(
      [/http:\/\/(?:127\.0\.0\.1|localhost):8080/g, service.url],
      [/sy_…/g, service.token],
      [/src_…/g, service.sourceId],
      [/SWITCHYARD_WRITE_KEY=…/g, `SWITCHYARD_WRITE_KEY=${service.writeKey}`],
      [/(?<!_)WRITE_KEY/g, service.writeKey],
    )
  }

  static async withService(service: Service): Promise<Reader> {
    return new Reader(service, await freePorts(3))
  }

  static alone(): Reader {
    return new Reader(null, [])
  }

  follow(guide: string): Promise<void> {
    return this.read(readFileSync(join(ROOT, guide), 'utf8'), guide)
  }

  async read(markdown: string, name = 'line'): Promise<void> {
    for (const block of blocksOf(markdown)) {
      try {
        await this.#do(block)
      } catch (error) {
        throw new Error(`${name}:${block.line}: ${(error as Error).message}`, { cause: error })
      }
    }
  }

  async #do({ language, words: [word, ...more], text }: Block): Promise<void> {
    assert.deepEqual(more, [], 'one word says how it is run')
    if (language === 'text') return await this.#compare(text, word)
    if (!['sh', 'js', 'ts'].includes(language)) return
    const [, elsewhere] = /^elsewhere:(.+)$/.exec(word ?? '') ?? []
    if (elsewhere !== undefined) return assert.ok(existsSync(join(ROOT, elsewhere)), `${elsewhere} is not there`)
    const own = this.#replaced.reduce((all, [from, to]) => all.replaceAll(from, to), text)
    assert.doesNotMatch(own, /…/, 'a placeholder that nobody fills in')
    if (language !== 'sh') {
      assert.match(word ?? '', /^[\w-]+\.\w+$/, 'code needs the name of a file')
      return writeFileSync(join(this.folder, word ?? ''), own)
    }
    if (word === 'start') return await this.#start(own)
    const [, status = '0'] = /^(?:exits:(\d+))?$/.exec(word ?? '') ?? assert.fail(`what is "${word}"?`)
    const run = new Started(own, this.folder, this.#env)
    this.#started.push(run)
    const code = await run.ended
    assert.equal(String(code), status, `it ended with ${code}\n${run.text()}`)
    this.#printed = run.text
  }

  async #start(text: string): Promise<void> {
    // The test has already done that.
    if (/\bnpm start\n$/.test(text)) {
      assert.ok(this.#service !== null)
      this.#printed = this.#service.stdout
      return
    }
    this.#last = new Started(text, this.folder, this.#env)
    this.#started.push(this.#last)
    const { text: printed, signals, isOver } = this.#last
    await signals.until(() => {
      assert.equal(isOver(), false, `it ended\n${printed()}`)
      return printed().includes('\n')
    })
    this.#printed = printed
  }

  async #compare(text: string, word: string | undefined): Promise<void> {
    assert.ok(word === undefined || word === 'started', `what is "${word}"?`)
    // The reader does not know this token, so any text matches.
    const expected = this.#replaced
      .filter(([, to]) => to !== this.#service?.token)
      .reduce((all, [from, to]) => all.replaceAll(from, to), text)
    const pattern = expected
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '')
      .map((line) => line.split('…').map(escaped).join('[^\\n]*?').replaceAll(/ +/g, ' +'))
      .join(' *\\n(?:[^]*\\n)?\\s*')
    const whole = new RegExp(`(?:^|\\n) *${pattern} *(?:\\n|$)`)
    if (word === undefined && this.#printed !== this.#last?.text) return assert.match(this.#printed(), whole)
    assert.ok(this.#last !== null, 'nothing was started')
    const { signals, text: printed } = this.#last
    await signals.until(() => whole.test(printed()), { what: String(whole), state: printed, deadlineMs: DEADLINE_MS })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const run of this.#started) run.kill()
    await Promise.all(this.#started.map(({ ended }) => ended))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Replace 9000, 9001 and 9002, which other programs may use. */
async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < count) ports.add(await freePort())
  return [...ports]
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

const alive = new Set<Started>()
process.on('exit', () => {
  for (const run of alive) run.kill()
})

/** A shell that runs a block, in a separate process group, so that its children end with it. */
class Started {
  readonly signals = new Signals()
  readonly ended: Promise<number | null>
  readonly #child: ChildProcess
  #text = ''
  #isOver = false

  constructor(script: string, cwd: string, env: Record<string, string>) {
    // Variables that one block exports are set in the next, as in one terminal.
    const text = `[ ! -f .exports ] || . ./.exports\nset -e\n${script}\nexport -p > .exports\n`
    this.#child = spawn('sh', ['-c', text], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    alive.add(this)
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (part: string) => {
        this.#text += part
        this.signals.notify()
      })
    }
    const deadline = setTimeout(() => this.kill(), DEADLINE_MS * 4)
    this.ended = new Promise((resolve, reject) => {
      this.#child.on('error', reject)
      this.#child.on('close', (code) => {
        clearTimeout(deadline)
        alive.delete(this)
        this.#isOver = true
        resolve(code)
        this.signals.notify()
      })
    })
  }

  readonly text = (): string => this.#text
  readonly isOver = (): boolean => this.#isOver

  kill(): void {
    const { pid } = this.#child
    if (this.#isOver || pid === undefined) return
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // It has already ended.
    }
  }
}
