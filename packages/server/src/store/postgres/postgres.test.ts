// The PostgreSQL adapter against the suite that every adapter passes.

import { conformance } from '../conformance.ts'
import { openTemp } from './fixtures/temp-store.ts'

conformance('PostgreSQL', openTemp)
