import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { parsePostgresAddress } from './address.ts'
import { PostgresUnavailable } from './connection.ts'
import { Database } from './database.ts'

// A fake server whose every packet the test controls, because a real one cannot be made to fail at a chosen moment.

function message(type: string, ...parts: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const AUTHENTICATED = message('R', Buffer.from([0, 0, 0, 0]))
const READY = message('Z', 'I')
/** One row with one column: `standby` is false. */
const ANSWER = Buffer.concat([
  message('1'),
  message('2'),
  message('T', Buffer.from([0, 1]), 'standby\0', Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 1, 255, 255, 255, 255, 0, 0])),
  message('D', Buffer.from([0, 1, 0, 0, 0, 1]), 'f'),
  message('C', 'SELECT 1\0'),
  READY,
])

function fatal(code: string): Buffer {
  return message('E', `SFATAL\0VFATAL\0C${code}\0Mit ends\0\0`)
}

interface Behaviour {
  /** Sent instead of accepting the connection. */
  refuse?: () => Buffer | undefined
  /** The answer to the nth query of a connection; undefined for no answer yet. */
  answer: (nth: number, socket: Socket) => Buffer | undefined
}

let server: Server
let behaviour: Behaviour
let connections = 0

before(async () => {
  server = createServer((socket) => {
    connections++
    let questions = 0
    socket.on('error', () => {})
    socket.on('data', () => {
      if (questions++ === 0) {
        const refusal = behaviour.refuse?.()
        if (refusal) socket.end(refusal)
        else socket.write(Buffer.concat([AUTHENTICATED, READY]))
        return
      }
      const answer = behaviour.answer(questions - 1, socket)
      if (answer) socket.write(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
after(() => {
  server.close()
})

function open(count: number): Database {
  const { port } = server.address() as AddressInfo
  const address = parsePostgresAddress(`postgres://a:b@127.0.0.1:${port}/c?sslmode=disable`)
  return new Database({ address, connections: count, connectMs: 2_000, statementMs: 1_000 })
}

test('a connection that closes with its first packet is not counted as open forever', async () => {
  behaviour = {
    answer: (_, socket) => {
      socket.end(Buffer.concat([ANSWER, fatal('57P01')]))
      return undefined
    },
  }
  const database = open(1)
  try {
    for (let nth = 0; nth < 3; nth++) await assert.rejects(database.query('SELECT 1'), PostgresUnavailable)
    behaviour = { answer: () => ANSWER }
    assert.equal((await database.query('SELECT 1')).count, 1)
  } finally {
    database.close()
  }
})

test('when the server accepts no more connections, queries wait for the existing ones', async () => {
  let asked = 0
  const attempts = connections
  behaviour = {
    refuse: () => (++asked > 1 ? fatal('53300') : undefined),
    answer: () => ANSWER,
  }
  const database = open(3)
  try {
    await Promise.all(Array.from({ length: 20 }, () => database.query('SELECT 1')))
    assert.ok(connections - attempts <= 3, `${connections - attempts} connections were tried for 20 queries`)
  } finally {
    database.close()
  }
})

test('any error that closes the connection means unavailable, and the statement may have been committed', async () => {
  // For example, a timeout for being idle in a transaction.
  behaviour = {
    answer: (nth, socket) => {
      if (nth === 1) return ANSWER
      socket.end(fatal('25P03'))
      return undefined
    },
  }
  const database = open(1)
  try {
    await assert.rejects(database.query('SELECT 1'), (error) => error instanceof PostgresUnavailable && error.mayHaveCommitted)
  } finally {
    database.close()
  }
})
