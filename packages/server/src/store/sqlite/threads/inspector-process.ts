// The process that inspects a whole file: see inspect.ts. It sends its result and waits until its parent kills it: a busy parent may see that
// a child has exited before it reads what the child sent. It ends by itself when the parent is gone.

import { type InspectionReply, inspectFile } from './inspect.ts'

let reply: InspectionReply
try {
  reply = { ok: true, inspection: await inspectFile(process.argv[2] as string) }
} catch (error) {
  reply = { ok: false, message: (error as Error).message }
}
process.once('disconnect', () => process.exit())
process.send?.(reply)
