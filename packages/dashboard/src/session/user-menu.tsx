// Who is logged in, with which role and sources and for how long, and logging out.

import { Badge, Button, Group, Popover, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { call } from '../api/client.ts'
import { useNames } from '../api/use-names.ts'
import { LogoutIcon, SettingsIcon, UserIcon } from '../components/icons.tsx'
import { LinkButton, LongNote, LongStrong, SmallButton, SmallNote, Tag, Time } from '../components/styled.tsx'
import { personName, tellOtherTabs, useSession } from './session.tsx'

const MOST_NAMES = 8

export function UserMenu() {
  const session = useSession()
  const { actor, role, sources, expiresAt } = session
  const name = personName(actor)
  const [isOpen, setOpen] = useState(false)
  const logOut = (): void => {
    void call('POST /api/logout').finally(() => {
      tellOtherTabs(null)
      window.location.reload()
    })
  }
  return (
    // Not a menu: a menu may contain only actions.
    <Popover position="bottom-end" width={280} shadow="md" trapFocus returnFocus opened={isOpen} onChange={setOpen}>
      <Popover.Target>
        <SmallButton onClick={() => setOpen(!isOpen)} px={8} aria-label={`Account of ${name}`} maw={190}>
          <Group gap={6} wrap="nowrap">
            <UserIcon size={15} />
            <Text span size="xs" truncate visibleFrom="sm" maw={140}>
              {name}
            </Text>
          </Group>
        </SmallButton>
      </Popover.Target>
      <Popover.Dropdown p="sm" aria-label={`Account of ${name}`}>
        <Stack gap={6}>
          <LongStrong>{name}</LongStrong>
          {actor.type === 'token' ? (
            <LongNote>Logged in with the control token {actor.name}</LongNote>
          ) : (
            actor.email != null && actor.email !== name && <LongNote>{actor.email}</LongNote>
          )}
          <Group gap={6}>
            <Tag>{role}</Tag>
            {sources === 'all' && (
              <Badge variant="light" color="gray" tt="none">
                all sources
              </Badge>
            )}
          </Group>
          {sources !== 'all' && <Sources ids={sources} />}
          {expiresAt !== null && (
            <SmallNote component="div">
              Session ends <Time at={expiresAt} relative size="xs" />
            </SmallNote>
          )}
          <Group gap="xs" mt={6}>
            <LinkButton to="/settings/tokens" size="xs" leftSection={<SettingsIcon size={15} />} onClick={() => setOpen(false)}>
              Tokens
            </LinkButton>
            <Button variant="default" size="xs" leftSection={<LogoutIcon size={15} />} onClick={logOut}>
              Log out
            </Button>
          </Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}

/** Sources that were deleted after the login have no name any more. */
function Sources({ ids }: { ids: readonly string[] }) {
  const { sources } = useNames()
  const names = ids.map((id) => sources.get(id) ?? id)
  return (
    <LongNote>
      {names.length === 0
        ? 'No sources'
        : `${names.length === 1 ? 'Source' : 'Sources'}: ${names.slice(0, MOST_NAMES).join(', ')}${names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : ''}`}
    </LongNote>
  )
}
