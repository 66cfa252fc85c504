// Creates a destination. If another one with the same name and receiver exists, asks first, because every message would be sent twice.

import { type ReactNode, useState } from 'react'
import { ApiProblem } from '../../api/client.ts'
import { useChange } from '../../api/queries.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import type { NewDestination } from './draft.ts'

interface Duplicate {
  body: NewDestination
  problem: ApiProblem
  settle: (created: { id: string } | ApiProblem) => void
}

/**
 * Render `dialog` beside the form. `receiver` is what its text calls the receiver, such as "URL". `create` rejects with an ApiProblem if nothing was
 * created.
 */
export function useCreateDestination(receiver: string): { create: (body: NewDestination) => Promise<{ id: string }>; dialog: ReactNode } {
  const change = useChange('POST /api/destinations', 'GET /api/destinations', 'GET /api/destinations/health', 'GET /api/ledger')
  const [duplicate, setDuplicate] = useState<Duplicate | null>(null)
  const create = async (body: NewDestination): Promise<{ id: string }> => {
    try {
      return await change.mutateAsync({ body })
    } catch (problem) {
      if (!(problem instanceof ApiProblem) || problem.code !== 'destination_exists') throw problem
      const created = await new Promise<{ id: string } | ApiProblem>((settle) => setDuplicate({ body, problem, settle }))
      if (created instanceof ApiProblem) throw created
      return created
    }
  }
  const close = (): void => {
    duplicate?.settle(duplicate.problem)
    setDuplicate(null)
  }
  const confirm = async (): Promise<void> => {
    if (duplicate === null) return
    const { body, settle } = duplicate
    const created = await change.mutateAsync({ body, query: { allowDuplicate: true } })
    settle(created)
  }
  const dialog = (
    <ConfirmDialog
      opened={duplicate !== null}
      onClose={close}
      title="Create a second destination?"
      verb="Create anyway"
      color="orange"
      onConfirm={confirm}
    >
      The destination {duplicate?.problem.destinationId} already has this name and the same {receiver}, and gets messages of the same
      source, so every message would be sent twice.
    </ConfirmDialog>
  )
  return { create, dialog }
}
