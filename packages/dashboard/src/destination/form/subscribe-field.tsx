// The expression that a message must match. The service checks it while it is typed, because only the service has the parser.

import { Anchor, Box } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { type ApiProblem, call } from '../../api/client.ts'
import { CodeArea } from '../../components/inputs.tsx'
import { SmallNote } from '../../components/styled.tsx'
import { useSession } from '../../session/session.tsx'
import { offsetOf, placeIn } from '../../text/code-problems.ts'
import { messageAtField } from './draft.ts'
import { type FieldsProps, textInput } from './field-state.ts'

const EXAMPLE = 'type = "track" and event = "Order Completed" and properties.total > 100'

export function SubscribeField({ draft, state }: FieldsProps) {
  const text = draft.subscribe.trim()
  const checked = useExpressionProblem(text, !state.isReadOnly)
  const problem = state.problem('subscribe') ?? checked
  return (
    <div>
      <CodeArea
        label="Expression"
        description="Only messages that match are sent. Leave empty to send all that the lists above allow."
        placeholder={EXAMPLE}
        {...textInput(state, 'subscribe', draft.subscribe, (subscribe) => ({ subscribe }))}
        error={problem}
        minRows={1}
        maxRows={8}
      />
      {problem !== null && <Position text={text} problem={problem} />}
      {text === '' && !state.isReadOnly && (
        <SmallNote mt={4}>
          <Anchor component="button" type="button" size="xs" onClick={() => state.set({ subscribe: EXAMPLE }, 'subscribe')}>
            Use an example
          </Anchor>
        </SmallNote>
      )}
    </div>
  )
}

/** The expression with the wrong part marked, if the error names a position. */
export function Position({ text, problem }: { text: string; problem: string }) {
  const place = placeIn(problem)
  if (place === null) return null
  const at = offsetOf(text, place)
  const [word = ''] = /^(?:"[^"]*"?|[\w.]+|\S)/.exec(text.slice(at)) ?? []
  return (
    <Box fz="xs" ff="monospace" mt={4} aria-hidden="true" style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
      {text.slice(0, at)}
      <mark>{word === '' ? ' ' : word}</mark>
      {text.slice(at + word.length)}
    </Box>
  )
}

/** The rest of the settings only makes the request complete. */
const SETTINGS = { name: 'Check', urls: ['https://example.com/'] }

export function useExpressionProblem(text: string, isEnabled: boolean): string | null {
  const { isAdmin } = useSession()
  const [subscribe] = useDebouncedValue(text, 400)
  const check = useQuery<string | null, ApiProblem>({
    queryKey: ['check of an expression', subscribe],
    queryFn: async ({ signal }) => {
      const { problems } = await call('POST /api/configuration/check', {
        body: { destinations: [{ settings: { ...SETTINGS, subscribe } }] },
        signal,
      })
      const problem = problems.find(({ field }) => field?.endsWith('subscribe'))
      return problem === undefined ? null : messageAtField('subscribe', problem.message)
    },
    // The check of configurations is for admins. Editors get the same error when they save.
    enabled: isAdmin && isEnabled && subscribe !== '',
    staleTime: Number.POSITIVE_INFINITY,
  })
  return subscribe === text && text !== '' ? (check.data ?? null) : null
}
