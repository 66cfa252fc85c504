// The violations of one message, as sentences.

import { Stack, Text } from '@mantine/core'
import { type ViolationText, violationSentence } from './plan-text.ts'

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
