// The process that inspects a whole file: see inspect.ts. It sends its result and is then killed by its parent.

import { type InspectionReply, inspectFile } from './inspect.ts'

let reply: InspectionReply
try {
  reply = { ok: true, inspection: await inspectFile(process.argv[2] as string) }
} catch (error) {
  reply = { ok: false, message: (error as Error).message }
}
process.send?.(reply)
