// What lists of deletions are narrowed by, in the address as everywhere.

import { Select, SimpleGrid, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useSearchState } from '../../url-state.ts'
import { DELETION_STATES, stateOf } from './deletion-state.tsx'

/** The user as typed, and the id to ask for when the typing has come to rest. */
export function useUser(): { user: string; userId: string | undefined } {
  const [params] = useSearchState()
  const user = params.get('user') ?? ''
  const [userId] = useDebouncedValue(user, 300)
  return { user, userId: userId === '' ? undefined : userId }
}

export function UserField() {
  const [params, change] = useSearchState()
  return (
    <TextInput
      label="User id"
      placeholder="All, or exactly this one"
      value={params.get('user') ?? ''}
      onChange={(event) => change({ user: event.currentTarget.value }, { replace: true })}
    />
  )
}

export function StateAndUser() {
  const [params, change] = useSearchState()
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
      <Select
        label="State"
        placeholder="All"
        data={[...DELETION_STATES]}
        value={stateOf(params.get('state')) ?? null}
        onChange={(value) => change({ state: value })}
        clearable
      />
      <UserField />
    </SimpleGrid>
  )
}
