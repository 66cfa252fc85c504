// The entry: `switchyard COMMAND …`. What a process has (arguments, environment, streams, signals, an exit code) is handed
// over here and nowhere else.

import { runCommandLine } from './commands/main.ts'

await runCommandLine(process)
