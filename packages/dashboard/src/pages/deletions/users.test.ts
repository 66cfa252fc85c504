import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plural } from '../../text/format.ts'
import { joinNames, MAX_USERS, notifiedDestinations, parseUserIds, usersProblem, waitingFor } from './users.ts'

test('parses one user id per line, each once, without surrounding white space', () => {
  assert.deepEqual(parseUserIds(' u-1\r\n\nu-2, really \nu-1\n'), ['u-1', 'u-2, really'])
  assert.deepEqual(parseUserIds('  \n'), [])
})

test('rejects too many users before the request is sent', () => {
  const users = Array.from({ length: MAX_USERS + 1 }, (_, at) => `u-${at}`)
  assert.equal(usersProblem(users.slice(1)), null)
  assert.match(usersProblem(users) ?? '', /at most/)
})

test('joins names with commas and "and", and counts the rest', () => {
  assert.deepEqual(
    [joinNames([]), joinNames(['a']), joinNames(['a', 'b']), joinNames(['a', 'b', 'c']), joinNames(['a', 'b', 'c', 'd', 'e'])],
    ['', 'a', 'a and b', 'a, b and c', 'a, b, c and 2 more'],
  )
  assert.deepEqual(
    [plural(1, 'user'), plural(2, 'user'), plural(0, 'copy', 'copies'), plural(2, 'delivery'), plural(2, 'day')],
    ['1 user', '2 users', '0 copies', '2 deliveries', '2 days'],
  )
})

test('a deletion waits for destinations, each with its users', () => {
  assert.deepEqual(
    waitingFor([
      { userId: 'u-1', destinationId: 'a' },
      { userId: 'u-1', destinationId: null },
      { userId: 'u-2', destinationId: 'a' },
      { userId: 'u-1', destinationId: 'a' },
      { userId: 'u-2', destinationId: 'b' },
    ]),
    [
      { destinationId: 'a', users: ['u-1', 'u-2'] },
      { destinationId: 'b', users: ['u-2'] },
    ],
  )
})

test('notifies the enabled destinations of the chosen sources', () => {
  const destinations = [
    { id: 'a', enabled: true, sourceIds: ['s1'] },
    { id: 'b', enabled: false, sourceIds: ['s1'] },
    { id: 'c', enabled: true, sourceIds: ['s2'] },
    { id: 'd', enabled: true, sourceIds: [] },
  ]
  const ids = (sourceIds: string[] | null): string[] => notifiedDestinations(destinations, sourceIds).map(({ id }) => id)
  assert.deepEqual([ids(null), ids(['s1']), ids(['s3'])], [['a', 'c'], ['a'], []])
})
