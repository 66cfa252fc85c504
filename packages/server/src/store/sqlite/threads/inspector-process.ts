// The process that looks at a whole file: see inspect.ts. Says what it found, and is ended.

import { type InspectionReply, inspectFile } from './inspect.ts'

let told: InspectionReply
try {
  told = { ok: true, inspection: await inspectFile(process.argv[2] as string) }
} catch (error) {
  told = { ok: false, message: (error as Error).message }
}
process.send?.(told)
