// A badge for the state of a deletion request or of one of its targets.

import { Tag } from '../../components/styled.tsx'

export const DELETION_STATES = ['pending', 'running', 'finished', 'failed'] as const
export type DeletionState = (typeof DELETION_STATES)[number]

const COLORS: Record<DeletionState, string> = { pending: 'blue', running: 'blue', finished: 'teal', failed: 'red' }

export function DeletionStateBadge({ state }: { state: DeletionState }) {
  return (
    <Tag color={COLORS[state]} miw="max-content">
      {state}
    </Tag>
  )
}

/** The state named in a page's address; undefined if it is not a state. */
export function stateOf(text: string | null): DeletionState | undefined {
  return DELETION_STATES.find((state) => state === text)
}
