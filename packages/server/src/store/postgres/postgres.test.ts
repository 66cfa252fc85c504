// Runs the conformance suite, which every adapter must pass, on the PostgreSQL adapter.

import { conformance } from '../conformance/conformance.ts'
import { openTemp } from './fixtures/temp-store.ts'

conformance('PostgreSQL', openTemp)
