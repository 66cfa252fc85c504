// The page that adds an integration of the catalogue.

import { KINDS } from '../../kinds/kinds.tsx'

export default function NewIntegrationPage() {
  const { New } = KINDS.integration
  return <New />
}
