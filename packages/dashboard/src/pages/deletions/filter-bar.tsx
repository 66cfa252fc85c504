// The filters of the deletion lists. They are kept in the page's address.

import { Select, SimpleGrid, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useSearchState } from '../../url/url-state.ts'
import { DELETION_STATES, stateOf } from './deletion-state.tsx'

/** The user id as typed, and the id to search for, which follows 300 ms after the last key press. */
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
      placeholder="Full user id"
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
