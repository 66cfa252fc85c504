// Removes an entry of a list in the form. Aligned with a field's input box, below the label.

import { ActionIcon, Tooltip } from '@mantine/core'
import { DeletionIcon } from '../../../components/icons.tsx'

export function RemoveButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" size={36} mt={25} onClick={onClick} aria-label={label}>
        <DeletionIcon size={16} />
      </ActionIcon>
    </Tooltip>
  )
}
