import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AddressProblem, describeAddress, parsePostgresAddress } from './address.ts'

test('a URL contains hosts, database and login', () => {
  const address = parsePostgresAddress('postgres://anna:p%40ss%3Aword@db1:6432,db2,[::1]:7000/events?target_session_attrs=read-write')
  assert.deepEqual(address.hosts, [
    { host: 'db1', port: 6432 },
    { host: 'db2', port: 5432 },
    { host: '::1', port: 7000 },
  ])
  assert.deepEqual([address.user, address.password, address.database, address.ssl], ['anna', 'p@ss:word', 'events', false])
  assert.equal(describeAddress(address), 'db1:6432,db2:5432,[::1]:7000/events')
})

test('hosts, ports and login may be given as parameters, as in libpq', () => {
  const { hosts, user, database } = parsePostgresAddress('postgresql:///?host=a,b&port=1,2&user=anna&dbname=events')
  assert.deepEqual(
    [hosts, user, database],
    [
      [
        { host: 'a', port: 1 },
        { host: 'b', port: 2 },
      ],
      'anna',
      'events',
    ],
  )
})

test('sslmode decides on encryption', () => {
  assert.equal(parsePostgresAddress('postgres://h/d?sslmode=disable').ssl, false)
  assert.deepEqual(parsePostgresAddress('postgres://h/d?sslmode=require').ssl, { rejectUnauthorized: false })
  assert.deepEqual(parsePostgresAddress('postgres://h/d?sslmode=verify-full').ssl, { rejectUnauthorized: true })
})

test('the connect timeout per host can be set, within limits', () => {
  assert.equal(parsePostgresAddress('postgres://h/d').connectMs, undefined)
  assert.equal(parsePostgresAddress('postgres://h/d?connect_timeout=10').connectMs, 10_000)
  for (const seconds of ['0', '-1', '61', '1.5', '', '1e1', 'soon'])
    assert.throws(() => parsePostgresAddress(`postgres://h/d?connect_timeout=${seconds}`), {
      message: /^connect_timeout in the PostgreSQL URL must be .* 1 to 60\.$/,
    })
})

test('an invalid URL is rejected with a message that never contains the password', () => {
  for (const text of [
    'mysql://a:secret@h/d',
    'postgres://a:secret@h:99999/d',
    'postgres://a:secret@h:x/d',
    'postgres://a:secret%ZZ@h/d',
    'postgres://a:secret@h/d?sslmode=sometimes',
    'postgres://a:secret@h/d?target_session_attrs=standby',
    'postgres://a:secret@h/d?sslrootcert=/there/is/none&sslmode=verify-ca',
    'postgres://a:secret@h/d?pool_size=5',
  ]) {
    assert.throws(
      () => parsePostgresAddress(text),
      (error) => error instanceof AddressProblem && !error.message.includes('secret') && error.message.length > 20,
      text,
    )
  }
})
