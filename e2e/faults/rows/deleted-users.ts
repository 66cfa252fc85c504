// Users are deleted while their messages fail and become dead letters. No other fault is caused.

import { deletedUsersOf } from '../rounds/deleted-users.ts'
import type { Fault, Injection } from '../rounds/fault.ts'
import { injected } from '../rounds/round.ts'

const AT_ONCE = 4

const deleted: Injection = {
  key: 'user-deleted',
  title: 'Users are deleted while their messages fail',
  how: 'Four users send messages that a transformation or the receiver rejects, so that dead letters are being written. Each user is deleted, without suppression: one half 0 to 150 ms after the messages were acknowledged, the others when the first dead letter has arrived.',
  note: 'Nothing of the deleted users may be left in the API or in the tables, down to the attempts, and none of their dead letters may arrive later than 20 s after the deletion was answered. In all rows that use the usual system, one such user is deleted at each of the first faults.',
  stores: ['sqlite', 'postgres'],
  perRound: 8,
  repeats: false,
  async cause(system) {
    const users = deletedUsersOf(system)
    await Promise.all(Array.from({ length: AT_ONCE }, () => users.delete()))
  },
}

export const DELETED_USERS: readonly Fault[] = [deleted].map(injected)
