// Routes for backups of the store, made while it is in use: create, show progress, download and delete. There is one at a time, because each
// needs as much disk space as the store. The key that encrypts stored secrets is not part of a backup, and no route returns it.

import { integer, nullable, object, oneOf, string, time } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Backup } from '../../store/store.ts'
import type { OperatorTools } from '../routes/operator-tools.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'

const BACKUP = object(
  {
    id: string(),
    state: oneOf(['copying', 'ready', 'failed']),
    doneBytes: integer({ description: 'The number of bytes copied so far.' }),
    totalBytes: integer({ description: 'The number of bytes to copy; once the backup is ready, the size of the file.' }),
    error: nullable(string({ description: 'Why the backup failed; null if it did not fail.' })),
    createdAt: time(),
  },
  { title: 'Backup', description: 'A consistent copy of the store. It is removed after 15 minutes, or when you delete it.' },
)

export function backupRoutes({ store, operatorTools }: ControlParts): Route[] {
  function backups(): NonNullable<OperatorTools['backups']> {
    const found = operatorTools?.backups ?? null
    if (found === null) throw new ApiError('backup_unsupported')
    return found
  }

  function find(id: string | undefined): Backup {
    const job = backups().get(id ?? '')
    if (job === undefined) throw new ApiError('backup_not_found')
    return job
  }

  return [
    route('POST', '/backups', {
      summary: 'Create a backup',
      access: { role: 'admin', sources: 'all' },
      description: 'Copies the store in the background while it is in use. The copy is consistent. There can be only one backup at a time.',
      status: 202,
      answer: BACKUP,
      errors: ['backup_running', 'backup_unsupported'],
      async handle({ actor }) {
        const job = backups().start()
        if (job === undefined) throw new ApiError('backup_running')
        await store.history.noteAudit({ actor, action: 'backup.create', subject: job.id, before: null, after: { id: job.id } })
        return job
      },
    }),
    route('GET', '/backups/:id', {
      summary: 'Retrieve a backup, with its progress',
      access: { role: 'admin', sources: 'all' },
      answer: BACKUP,
      errors: ['backup_not_found', 'backup_unsupported'],
      handle: ({ params }) => find(params['id']),
    }),
    route('GET', '/backups/:id/file', {
      summary: 'Download a backup',
      access: { role: 'admin', sources: 'all' },
      description: 'The response is a SQLite database file. The backup must have the state `ready`.',
      bytes: true,
      errors: ['backup_not_found', 'backup_not_ready', 'backup_unsupported'],
      handle({ params }) {
        const bytes = backups().open(find(params['id']).id)
        if (bytes === undefined) throw new ApiError('backup_not_ready')
        return bytes
      },
    }),
    route('DELETE', '/backups/:id', {
      summary: 'Delete a backup, or cancel it while it is in progress',
      access: { role: 'admin', sources: 'all' },
      status: 204,
      errors: ['backup_not_found', 'backup_unsupported'],
      async handle({ params }) {
        await backups().remove(find(params['id']).id)
      },
    }),
  ]
}
