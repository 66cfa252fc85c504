// The PostgreSQL adapter against the suite that every adapter passes.

import { conformance } from '../conformance/conformance.ts'
import { openTemp } from './fixtures/temp-store.ts'

conformance('PostgreSQL', openTemp)
