// The steps of the schema from the sixth on. The first five, and what holds for all steps, are in migrations.ts.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import type { Ask } from '../session/database.ts'

export interface Migration {
  /** The lowest step whose code still works after this one was applied; the step itself if no older code works. */
  worksFrom: number
  /** The step is run only when no node is running: nodes of the previous version cannot work with its result. */
  alone?: true
  sql: string
  /** Changes that SQL cannot make. Runs after the SQL, in the same transaction. */
  work?: (ask: Ask, box: SecretBox) => Promise<void>
}

export const MIGRATIONS_FROM_6: readonly Migration[] = [
  {
    // Nodes of the previous version reject tokens with limits, and write audit entries without sources.
    worksFrom: 5,
    sql: `
  -- What a token is limited to: see resource-rows.ts. Null: nothing.
  ALTER TABLE tokens ADD COLUMN limits text;
  -- The type and the owner of the actor, and the ids of the sources that the change concerns, as JSON: see audit-log.ts.
  ALTER TABLE audit ADD COLUMN actor_about text, ADD COLUMN sources text;
  `,
  },
]
