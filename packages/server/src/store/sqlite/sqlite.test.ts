// Runs the conformance suite on the SQLite adapter.

import { conformance } from '../conformance/conformance.ts'
import { openTemp } from './fixtures/temp-store.ts'

conformance('SQLite', openTemp)
