// The filters of the deletion lists, which are kept in the page's address, and the state of a request or of one of its targets.

import { SimpleGrid } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { ParamInput } from '../../components/inputs.tsx'
import { ParamCombobox } from '../../components/param-combobox.tsx'
import { Tag } from '../../components/styled.tsx'
import { useSearchState } from '../../url/url-state.ts'

/** The user id as typed, and the id to search for, which follows 300 ms after the last key press. */
export function useUser(): { user: string; userId: string | undefined } {
  const [params] = useSearchState()
  const user = params.get('user') ?? ''
  const [userId] = useDebouncedValue(user, 300)
  return { user, userId: userId === '' ? undefined : userId }
}

export function UserField() {
  return <ParamInput param="user" label="User id" placeholder="Full user id" />
}

export function StateAndUser() {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
      <ParamCombobox param="state" label="State" placeholder="All" options={DELETION_STATES} />
      <UserField />
    </SimpleGrid>
  )
}

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
