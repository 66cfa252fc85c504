// Messages in quarantine: why they are there, and buttons that release or delete them, after a confirmation, and show the progress.

import { Alert, Button, Progress, Stack, Text } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type ApiProblem, call } from '../../api/client.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { exactCount, plural } from '../../text/format.ts'
import { type EndOfQuarantine, endQuarantine, type QuarantineSelection, selectionWords } from './end-quarantine.ts'
import { type ViolationText, violationSentence } from './plan-text.ts'

const STALE = ['GET /api/quarantine', 'GET /api/stats/totals', 'GET /api/messages/{id}']

interface EndButtonsProps {
  selection: QuarantineSelection
  onEnd?: () => void
  names?: ReadonlyMap<string, string>
  size?: string
}

export function EndButtons({ selection, onEnd, names, size = 'xs' }: EndButtonsProps) {
  const client = useQueryClient()
  const [asked, setAsked] = useState<EndOfQuarantine | null>(null)
  const [done, setDone] = useState<{ end: EndOfQuarantine; count: number } | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const words = selectionWords(selection, names)
  const start = (end: EndOfQuarantine): void => {
    setProblem(null)
    setDone({ end, count: 0 })
    endQuarantine(end, selection, call, (count) => setDone({ end, count }))
      .then((count) => {
        notifications.show({
          color: 'teal',
          message: `${end === 'release' ? 'Released' : 'Deleted'} ${plural(count, 'message')}.`,
        })
        onEnd?.()
      })
      .catch(({ message }: ApiProblem) => setProblem(message))
      .finally(() => {
        setDone(null)
        for (const operation of STALE) void client.invalidateQueries({ queryKey: [operation] })
      })
  }
  return (
    <>
      {done === null ? (
        <>
          <Button size={size} onClick={() => setAsked('release')}>
            Release {words}
          </Button>
          <Button size={size} variant="light" color="red" onClick={() => setAsked('delete')}>
            Delete {words}
          </Button>
        </>
      ) : (
        <Stack gap={4} role="status" style={{ flex: '1 1 200px' }}>
          <Text size="sm">
            {done.end === 'release' ? 'Releasing' : 'Deleting'} {words}: {exactCount(done.count)} done
          </Text>
          <Progress value={100} animated aria-label={`${done.end === 'release' ? 'Releasing' : 'Deleting'} messages`} />
        </Stack>
      )}
      {problem !== null && (
        <Alert color="red" role="alert" withCloseButton onClose={() => setProblem(null)}>
          {problem}
        </Alert>
      )}
      <ConfirmDialog
        opened={asked !== null}
        onClose={() => setAsked(null)}
        title={asked === 'delete' ? `Delete ${words}?` : `Release ${words}?`}
        verb={asked === 'delete' ? 'Delete' : 'Release'}
        color={asked === 'delete' ? 'red' : 'blue'}
        onConfirm={async () => {
          if (asked !== null) start(asked)
        }}
      >
        {asked === 'delete'
          ? 'The messages are never sent. They stay in the list of messages until the end of the retention period.'
          : 'The messages are sent to the destinations that would get them if they were received now. This cannot be undone.'}
      </ConfirmDialog>
    </>
  )
}

export function Reasons({ violations }: { violations: readonly ViolationText[] }) {
  return (
    <Stack gap={2} component="ul" m={0} p={0} style={{ listStyle: 'none' }}>
      {violations.map((violation) => (
        <Text key={`${violation.code} ${violation.path}`} component="li" size="sm" style={{ overflowWrap: 'anywhere' }}>
          {violationSentence(violation)}
        </Text>
      ))}
    </Stack>
  )
}
