// Statements over the HTTP interface of ClickHouse. Credentials are in headers, never in addresses, which servers log. Rows are compressed.

import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import { WarehouseProblem } from '../failure.ts'
import { HttpConnections } from '../http/request.ts'
import type { ClickHouseSettings } from '../warehouse.ts'
import { ClickHouseError } from './clickhouse-failures.ts'

const STATEMENT_MS = 10 * 60_000
const compressed = promisify(zstdCompress)

export class ClickHouseHttp {
  readonly #settings: ClickHouseSettings
  readonly #connections = new HttpConnections()

  constructor(settings: ClickHouseSettings) {
    this.#settings = settings
  }

  /** Runs a statement that returns nothing. */
  async run(sql: string, options: Readonly<Record<string, string>> = {}, signal?: AbortSignal): Promise<void> {
    await this.#send(options, Buffer.from(sql), {}, signal)
  }

  /** The rows of a query, as arrays. `parameters` are for `{name:Type}` in the query. */
  async rows(
    sql: string,
    parameters: Readonly<Record<string, string>> = {},
    options: Readonly<Record<string, string>> = {},
  ): Promise<unknown[][]> {
    const named = Object.fromEntries(Object.entries(parameters).map(([name, value]) => [`param_${name}`, value]))
    const body = await this.#send({ ...options, ...named }, Buffer.from(`${sql} FORMAT JSONCompactEachRow`), {})
    const lines = body.toString().split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as unknown[])
  }

  /** Sends rows as JSON, one array per line. Returns the bytes that were sent. */
  async insert(into: string, lines: string, options: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<number> {
    const bytes = await compressed(Buffer.from(lines))
    await this.#send({ ...options, query: `INSERT INTO ${into} FORMAT JSONCompactEachRow` }, bytes, { 'content-encoding': 'zstd' }, signal)
    return bytes.length
  }

  close(): void {
    this.#connections.close()
  }

  async #send(
    options: Readonly<Record<string, string>>,
    body: Buffer,
    headers: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<Buffer> {
    const { url: address, user, password = '' } = this.#settings
    const url = new URL(address)
    // Otherwise an error in the middle of a response would come after the status 200.
    for (const [name, value] of Object.entries({ wait_end_of_query: '1', ...options })) url.searchParams.set(name, value)
    const answer = await this.#connections.request({
      method: 'POST',
      url,
      headers: { ...headers, 'x-clickhouse-user': user, 'x-clickhouse-key': password },
      body: [body],
      signal,
      // It answers when the statement is done.
      timeoutMs: STATEMENT_MS,
      idleMs: STATEMENT_MS,
    })
    const code = Number(answer.headers['x-clickhouse-exception-code'] ?? 0)
    // Something in between may send back what it got.
    const said = answer.body.toString('utf8', 0, 2_000)
    const text = password.length < 4 ? said : said.replaceAll(password, '(hidden)')
    if (answer.status === 200 && code === 0) return answer.body
    if (code === 0 && !/^Code: \d+/.test(text))
      throw new WarehouseProblem(
        'failed',
        `${url.origin} answered with the status ${answer.status}, and not as ClickHouse does. Check the address.`,
      )
    throw new ClickHouseError(code === 0 ? Number(/^Code: (\d+)/.exec(text)?.[1]) : code, text)
  }
}
